//! The quarantine: items of a source's pages from which no post could be read, stored as received.
//!
//! An item with a position is stored once, in its last form. An item without one is stored once for
//! its bytes. It leaves the quarantine when a page shows a post at its position, when a page proves
//! that nothing unreadable is left between its neighbours, or when a later version of the program
//! reads it.
//!
//! A source keeps [`MAX_ITEMS`] items with at most [`MAX_BYTES`]. The first ones stay. Of items
//! beyond the bytes only the position is kept, so that reports still count them, and items beyond
//! the number are dropped.

use std::collections::HashMap;

use driftline_core::{
    answer::{Page, Unreadable},
    post::Post,
    refresh::Policy,
    timeline::{IdScheme, Reading},
    upstream_id::{Key, UpstreamId},
};
use driftline_db::{Column, DbError, Row, ToValue, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        CommitSummary, entry,
        machine::LockedSource,
        observation::{IntakeContext, PostObservation},
        post_intake,
    },
    text::without_nul,
};

/// An item in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its key in the source's quarantine.
    pub key: String,
    /// The item in its last form, possibly with only the first of its bytes.
    pub item: Unreadable,
    /// The number of its stored bytes.
    pub size: u64,
    /// The version of the program that could not read it.
    pub program: String,
    /// The time of its first request, in Unix ms.
    pub first_seen_at_ms: i64,
    /// The time of its last request, in Unix ms.
    pub last_seen_at_ms: i64,
}

/// The number of a source's items in quarantine.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count(tx: &mut Tx<'_>, source: SourceKey) -> Result<u64, StoreError> {
    let count = "select count(*) as items from quarantine
         where source_id = $1 and instance_id = $2";
    let key: [&dyn ToValue; 2] = [&source.id(), &source.instance_id()];
    let items = tx.query_one(count, &key, |row| row.i64("items"))?;
    Ok(items.unsigned_abs())
}

/// A source's items in quarantine, in order of their arrival. If there are many, each has only so
/// many of its first bytes that all together have about [`LISTED_BYTES`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<Quarantined>, StoreError> {
    let items = i64::try_from(count(tx, source)?).unwrap_or(i64::MAX);
    let max = (LISTED_BYTES / items.max(1)).max(MIN_LISTED_BYTES);
    let condition = format!("source_id = $1 and instance_id = $2 {IN_ORDER}");
    Ok(tx.query(
        &select("$3", &condition),
        &[&source.id(), &source.instance_id(), &max],
        from_row,
    )?)
}

/// Items of a source that no program of this version has tried to read, in order of their arrival:
/// one, or more with [`PORTION_BYTES`] together. None are left once each was passed to
/// [`commit_retried`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn untried(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<Quarantined>, StoreError> {
    let sizes = tx.query(
        &format!(
            "select item, {SIZE} as size from quarantine
             where source_id = $1 and instance_id = $4 and program <> $2 and length(bytes) > 0
             {IN_ORDER} limit $3"
        ),
        &[
            &source.id(),
            &PROGRAM,
            &PORTION_ITEMS,
            &source.instance_id(),
        ],
        |row| Ok((row.text("item")?, row.i64("size")?)),
    )?;
    let mut room = PORTION_BYTES;
    let fits = |(index, (_, size)): &(usize, &(String, i64))| {
        room -= size;
        *index == 0 || room >= 0
    };
    let keys = sizes.iter().enumerate().take_while(fits);
    let keys: Vec<&str> = keys.map(|(_, (key, _))| key.as_str()).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let condition = format!("source_id = $1 and instance_id = $3 and item {{in $2}} {IN_ORDER}");
    let keys = Column::text(keys);
    let sql = select("$4", &condition);
    Ok(tx.query(
        &sql,
        &[&source.id(), &keys, &source.instance_id(), &MAX_BYTES],
        from_row,
    )?)
}

/// Items that were read again, to commit.
#[derive(Clone, Copy, Debug)]
pub struct CommitRetried<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The order of the source's IDs.
    pub scheme: &'a IdScheme,
    /// The items, each with its result.
    pub items: &'a [(Quarantined, RetriedItem)],
    /// The policy for refreshing posts from now on.
    pub policy: &'a Policy,
    /// The present time in Unix ms.
    pub now_ms: i64,
}

/// The result of reading an item in quarantine: its position, and its post if it is one, or the
/// reason why it cannot be read.
pub type RetriedItem = Result<(UpstreamId, Option<Post>), String>;

/// Commits the results of reading items in quarantine. Posts are stored like those that a page
/// showed late. Unreadable items stay, and the next version of the program tries them again.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn commit_retried(
    tx: &mut Tx<'_>,
    commit: &CommitRetried<'_>,
) -> Result<CommitSummary, StoreError> {
    let mut source = LockedSource::load(tx, commit.source, commit.fence)?;
    let mut summary = CommitSummary::default();
    for (quarantined, read) in commit.items {
        let (position, post) = match read {
            Ok((position, post)) => (position, post),
            Err(reason) => {
                retain(tx, source.key, &quarantined.key, reason)?;
                continue;
            }
        };
        let Ok(key) = commit.scheme.key(position) else {
            let reason = format!("{position} is no ID as the source's others are");
            retain(tx, source.key, &quarantined.key, &reason)?;
            continue;
        };
        tx.execute_later(
            "delete from quarantine where source_id = $1 and item = $2 and instance_id = $3",
            &[&source.id, &quarantined.key, &source.instance_id],
        )?;
        let Some(post) = post else { continue };
        let entry = entry::at(tx, source.key, &[key.as_str()])?.remove(key.as_str());
        let position_ms = commit.scheme.time_ms(&key);
        let observation = PostObservation::new(post, key.as_str(), position_ms, entry);
        let context =
            IntakeContext::answered(quarantined.last_seen_at_ms, commit.now_ms, commit.policy);
        let taken = match observation.may_be_news() {
            true => post_intake::take_in(tx, &mut source, &[observation], context)?,
            false => CommitSummary::default(),
        };
        summary.new += taken.new;
        summary.edited += taken.edited;
    }
    source.library.save(tx)?;
    summary.update_count = source.library.update_count;
    Ok(summary)
}

fn retain(tx: &mut Tx<'_>, source: SourceKey, key: &str, reason: &str) -> Result<(), StoreError> {
    tx.execute_later(
        "update quarantine set program = $3, reason = $4
         where source_id = $1 and item = $2 and instance_id = $5",
        &[
            &source.id(),
            &key,
            &PROGRAM,
            &&*without_nul(reason),
            &source.instance_id(),
        ],
    )?;
    Ok(())
}

/// Stores a page's unreadable items, and removes those at whose positions the page lists posts. If
/// the whole page can be read, it also removes those without a position in the range that it
/// proves.
pub(crate) fn take_in(
    tx: &mut Tx<'_>,
    source: SourceKey,
    page: &Page,
    reading: &Reading,
    proves: Option<&(Key, Key)>,
) -> Result<(), StoreError> {
    let listed = page.listed.iter().map(|listed| key_of(&listed.position));
    let listed: Vec<String> = listed.collect();
    if !listed.is_empty() {
        tx.execute_later(
            "delete from quarantine where source_id = $1 and item {in $2} and instance_id = $3",
            &[
                &source.id(),
                &Column::text(listed.iter().map(|key| &**key)),
                &source.instance_id(),
            ],
        )?;
    }
    if !page.unreadable.is_empty() {
        return keep(tx, source, page, reading);
    }
    let Some((low, high)) = proves else {
        return Ok(());
    };
    // An item with only one neighbour was at an end of its page.
    tx.execute_later(
        "delete from quarantine where source_id = $1 and instance_id = $4 and position is null
             and coalesce(below_key >= $2, above_key > $2)
             and coalesce(above_key <= $3, below_key < $3)",
        &[
            &source.id(),
            &low.as_str(),
            &high.as_str(),
            &source.instance_id(),
        ],
    )?;
    Ok(())
}

fn keep(
    tx: &mut Tx<'_>,
    source: SourceKey,
    page: &Page,
    reading: &Reading,
) -> Result<(), StoreError> {
    let mut room = Room::left(tx, source, &page.unreadable)?;
    for item in &page.unreadable {
        let key = key_of_item(item);
        let Some(bytes) = room.take(&key, &item.bytes) else {
            tracing::warn!(
                source = source.id(),
                "the quarantine is full; an unreadable item is dropped"
            );
            continue;
        };
        let reason = match bytes.len() == item.bytes.len() {
            true => without_nul(&item.reason).into_owned(),
            false => format!(
                "{}; the quarantine has no room for it",
                without_nul(&item.reason)
            ),
        };
        let id =
            |id: &Option<UpstreamId>| id.as_ref().map(|id| without_nul(id.as_str()).into_owned());
        let order = |id: &Option<UpstreamId>| {
            let key = reading.scheme?.key(id.as_ref()?).ok()?;
            Some(key.as_str().to_owned())
        };
        tx.execute_later(
            "insert into quarantine (source_id, item, position, above, below, above_key, below_key,
                 bytes, reason, program, first_seen_at_ms, last_seen_at_ms, instance_id)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)
             on conflict ({key source_id, item + instance_id}) do update set above = excluded.above,
                 below = excluded.below, above_key = excluded.above_key,
                 below_key = excluded.below_key, bytes = excluded.bytes,
                 reason = excluded.reason, program = excluded.program,
                 last_seen_at_ms = excluded.last_seen_at_ms",
            &[
                &source.id(),
                &key,
                &id(&item.position),
                &id(&item.above),
                &id(&item.below),
                &order(&item.above),
                &order(&item.below),
                &bytes.to_vec(),
                &reason,
                &PROGRAM,
                &page.headers.sent_at_ms,
                &source.instance_id(),
            ],
        )?;
    }
    Ok(())
}

/// The remaining room of a source's quarantine.
struct Room {
    items: i64,
    bytes: i64,
    /// The sizes of the page's items that are already in it.
    known: HashMap<String, i64>,
}

impl Room {
    fn left(tx: &mut Tx<'_>, source: SourceKey, items: &[Unreadable]) -> Result<Self, DbError> {
        let keys: Vec<String> = items.iter().map(key_of_item).collect();
        let known = tx.query(
            &format!(
                "select item, {SIZE} as size from quarantine
                 where source_id = $1 and item {{in $2}} and instance_id = $3"
            ),
            &[
                &source.id(),
                &Column::text(keys.iter().map(|key| &**key)),
                &source.instance_id(),
            ],
            |row| Ok((row.text("item")?, row.i64("size")?)),
        )?;
        let (items, bytes) = tx.query_one(
            "select count(*) as items, coalesce(sum(length(bytes)), 0) as bytes
             from quarantine where source_id = $1 and instance_id = $2",
            &[&source.id(), &source.instance_id()],
            |row| Ok((row.i64("items")?, row.i64("bytes")?)),
        )?;
        Ok(Self {
            items: MAX_ITEMS - items,
            bytes: MAX_BYTES - bytes,
            known: known.into_iter().collect(),
        })
    }

    /// Takes the bytes of an item for which there is room, all or none; `None` if there is no room
    /// for a further item.
    fn take<'b>(&mut self, key: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let known = self.known.get(key).copied();
        if known.is_none() && self.items <= 0 {
            return None;
        }
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let room = self.bytes + known.unwrap_or_default();
        let (size, bytes) = match size <= room {
            true => (size, bytes),
            false => (0, &bytes[..0]),
        };
        self.items -= i64::from(known.is_none());
        self.bytes = room - size;
        self.known.insert(key.to_owned(), size);
        Some(bytes)
    }
}

/// The key of an item, from its position, or from its bytes by FNV-1a, which is the same in every
/// version of the program.
fn key_of_item(item: &Unreadable) -> String {
    if let Some(position) = &item.position {
        return key_of(position);
    }
    let hash = item
        .bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("#{hash:016x}-{}", item.bytes.len())
}

/// The key of an item at this position.
fn key_of(position: &UpstreamId) -> String {
    format!("@{}", without_nul(position.as_str()))
}

/// Selects the columns of [`from_row`], with at most `max_bytes` of the bytes.
fn select(max_bytes: &str, condition: &str) -> String {
    let max = format!("cast({max_bytes} as integer)");
    format!(
        "select item, position, above, below,
             case when length(bytes) > {max} then substr(bytes, 1, {max})
                 else bytes end as bytes,
             {SIZE} as size, reason, program, first_seen_at_ms, last_seen_at_ms
         from quarantine where {condition}"
    )
}

fn from_row(row: &Row<'_>) -> Result<Quarantined, DbError> {
    let id = |column| Ok::<_, DbError>(row.opt_str(column)?.map(UpstreamId::from));
    Ok(Quarantined {
        key: row.text("item")?,
        item: Unreadable {
            position: id("position")?,
            above: id("above")?,
            below: id("below")?,
            bytes: row.bytes("bytes")?,
            reason: row.text("reason")?,
        },
        size: row.i64("size")?.unsigned_abs(),
        program: row.text("program")?,
        first_seen_at_ms: row.i64("first_seen_at_ms")?,
        last_seen_at_ms: row.i64("last_seen_at_ms")?,
    })
}

/// The size of an item, in the type of databases' whole numbers.
const SIZE: &str = "cast(length(bytes) as bigint)";
const IN_ORDER: &str = "order by first_seen_at_ms, item";
/// The version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// A server whose items have ever new bytes, and no positions, must not fill the store.
pub const MAX_ITEMS: i64 = 10_000;
/// The largest number of bytes of a source's items together.
pub const MAX_BYTES: i64 = 64 << 20;
/// The approximate largest number of bytes of a list, unless there are so many items that
/// [`MIN_LISTED_BYTES`] of each make more.
pub const LISTED_BYTES: i64 = 8 << 20;
/// The smallest number of bytes of each item in a list, if it has them.
pub const MIN_LISTED_BYTES: i64 = 1 << 10;
/// The largest number of items that are read again at once.
pub const PORTION_ITEMS: i64 = 200;
/// The largest number of bytes of items that are read again at once.
pub const PORTION_BYTES: i64 = 4 << 20;
