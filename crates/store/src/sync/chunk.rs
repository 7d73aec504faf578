use driftline_core::sync::{LibraryState, RawJson, SyncedObject, Tombstone};
use driftline_db::Tx;

use super::{
    cursor::Cursor,
    start::{self, Start},
    values::{self, ShownPosts},
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    library::{
        LibraryOwner,
        history::LibraryHistory,
        object::{KnownObject, OBJECT_COLUMNS},
    },
};

/// A part of what brings a replica up to date.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Its meaning for the replica.
    pub state: LibraryState,
    /// The cursor after it. That of a replica that has diverged is as it was.
    pub cursor: Cursor,
    /// True if more follows after the cursor.
    pub more: bool,
    /// The objects: by ascending USN, or in a full sync by descending USN.
    pub objects: Vec<SyncedObject>,
    /// The objects that were deleted, by ascending USN.
    pub gone: Vec<Tombstone>,
}

/// The next part of what a replica with this cursor lacks; `None` if it lacks nothing. It has at most `max_entries` objects and
/// tombstones, and their keys and values, with the copies of bookmarked posts, at most `max_bytes` of JSON, unless the first
/// object alone is larger. Reads the account's sources at most once.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails; the errors of the writer.
pub fn chunk_with_copies(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    cursor: Option<&Cursor>,
    max_entries: u32,
    max_bytes: usize,
    shown: ShownPosts<'_>,
) -> Result<Option<Chunk>, StoreError> {
    let max_entries = max_entries.max(1);
    let library = LibraryHistory::load(tx, LibraryOwner::Account(account))?;
    let (state, cursor, above, up_to) = match (start::decide(tx, library, cursor)?, cursor) {
        (Start::Full { cursor }, _) => {
            let up_to = cursor
                .below
                .map_or(cursor.usn, |below| cursor.usn.min(below - 1));
            (LibraryState::Full, cursor, 0, up_to)
        }
        (Start::Changes, Some(known)) => {
            let count = library.update_count;
            let cursor = Cursor::at(tx, library, count)?;
            (LibraryState::Changes, cursor, known.position(), count)
        }
        (Start::Diverged, Some(cursor)) => {
            return Ok(Some(Chunk {
                state: LibraryState::Diverged,
                cursor: cursor.clone(),
                more: false,
                objects: Vec::new(),
                gone: Vec::new(),
            }));
        }
        // Without a cursor it is always a full sync.
        (Start::Current | Start::Changes | Start::Diverged, _) => return Ok(None),
    };
    let is_full = state == LibraryState::Full;
    let (living, order) = match is_full {
        true => ("and not removed", "desc"),
        false => ("", "asc"),
    };
    let found = tx.query(
        &format!(
            "select {OBJECT_COLUMNS} from library_object
             where account_id = $1 and usn > $2 and usn <= $3 {living}
             order by usn {order} limit $4"
        ),
        &[&sql(account), &above, &up_to, &(i64::from(max_entries) + 1)],
        KnownObject::from_row,
    )?;
    let page = Page::fill(tx, account, &found, max_entries, max_bytes, shown)?;
    let last = page.last_usn.filter(|_| page.has_more);
    Ok(Some(Chunk {
        state,
        cursor: Cursor {
            after: last.filter(|_| !is_full),
            below: last.filter(|_| is_full),
            ..cursor
        },
        more: page.has_more,
        objects: page.objects,
        gone: page.gone,
    }))
}

/// The number of objects that an account has: those of a full sync that begins now.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count_objects(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<u64, StoreError> {
    let count = tx.query_one(
        "select count(*) as objects from library_object where account_id = $1 and not removed",
        &[&sql(account)],
        |row| row.i64("objects"),
    )?;
    Ok(count.cast_unsigned())
}

/// The first of some objects that fit into a chunk.
#[derive(Default)]
struct Page {
    objects: Vec<SyncedObject>,
    gone: Vec<Tombstone>,
    /// The USN of the last object or tombstone.
    last_usn: Option<i64>,
    /// True if not all of them fit.
    has_more: bool,
}

impl Page {
    fn fill(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        found: &[KnownObject],
        max_entries: u32,
        max_bytes: usize,
        shown: ShownPosts<'_>,
    ) -> Result<Page, StoreError> {
        let (mut page, mut bytes, mut entries) = (Page::default(), 0, 0);
        // Not all at once: a few large values may fill the chunk.
        for batch in found.chunks(VALUES_AT_ONCE) {
            let mut values = values::load(tx, account, batch, Some(shown))?;
            for object in batch {
                let value = values.remove(&object.key);
                let value = value.map(|value| RawJson::from(&value.json()));
                let value_bytes = value.as_ref().map_or(0, |value| value.get().len());
                bytes += ENTRY_BYTES + object.key.as_str().len() + value_bytes;
                if entries == max_entries || (entries > 0 && bytes > max_bytes) {
                    page.has_more = true;
                    return Ok(page);
                }
                entries += 1;
                page.last_usn = Some(object.usn);
                let (key, usn) = (object.key.clone(), object.usn());
                match value {
                    Some(value) => page.objects.push(SyncedObject { key, usn, value }),
                    None if object.is_removed => page.gone.push(Tombstone { key, usn }),
                    // It has no value, so no replica gets it.
                    None => {}
                }
            }
        }
        Ok(page)
    }
}

/// The number of objects whose values are read together.
const VALUES_AT_ONCE: usize = 50;
/// The size of an object or tombstone without its key and value, in bytes.
const ENTRY_BYTES: usize = 50;
