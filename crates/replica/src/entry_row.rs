use std::{borrow::Cow, collections::BTreeMap, iter::repeat_n};

use driftline_core::{
    post::Visibility,
    sync::{LibraryDigest, ObjectKey, SyncedObject},
};
use driftline_db::{Column, DbError, Row, Tx};
use driftline_mastodon::{RawObject, is_partial_entry, merge_partial_entry};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    ReplicaError, author_row, index_row,
    object_row::{count_by, number},
    timeline::visibility,
};

/// An entry of a subscription with a place.
#[derive(Clone, Debug)]
pub(crate) struct EntryRow {
    pub(crate) library: String,
    pub(crate) key: String,
    pub(crate) place: i64,
    /// The value, as JSON.
    pub(crate) value: String,
}

impl EntryRow {
    /// True if entries of other libraries with this key may be other posts: it has the post's ID on the source's server.
    pub(crate) fn has_local_key(&self) -> bool {
        self.key.starts_with("post:upstream:")
    }

    /// The entity `Status` in the value; `None` if the object is of a later version and has none.
    pub(crate) fn status(&self) -> Option<&RawValue> {
        let value = serde_json::from_str::<Stated<'_>>(&self.value).ok()?;
        Some(value.status)
    }
}

/// Stores objects of a source's library, which came in the full sync with this number or after it. Of several with one key the
/// last one stays, and a partial one changes the one before it. Returns false if one has the update alone of an entry that is
/// not here.
pub(crate) fn put_all(
    tx: &mut Tx<'_>,
    library: &str,
    objects: &[SyncedObject],
    full_sync: u64,
) -> Result<bool, ReplicaError> {
    let mut values: BTreeMap<&str, Cow<'_, str>> = BTreeMap::new();
    let mut is_whole = true;
    for object in objects {
        let (key, value) = (object.key.as_str(), object.value.get());
        if !is_partial(value) {
            values.insert(key, Cow::Borrowed(value));
            continue;
        }
        // Its update belongs to the value that came before it.
        let whole = match values.get(key) {
            Some(known) => merge_partial_entry(known, value),
            None => tx
                .query_opt(
                    "select value from entry where library = $1 and key = $2",
                    &[&library, &key],
                    |row| row.text("value"),
                )?
                .and_then(|known| merge_partial_entry(&known, value)),
        };
        match whole {
            Some(whole) => {
                values.insert(key, Cow::Owned(whole));
            }
            None => is_whole = false,
        }
    }
    let places: Vec<i64> = values.values().map(|value| place(value)).collect();
    let full_sync = number(full_sync)?;
    let columns = [
        Column::text(repeat_n(library, values.len())),
        Column::text(values.keys().copied()),
        Column::i64(places.iter().copied()),
        Column::i64(repeat_n(full_sync, values.len())),
        Column::text(values.values().map(|value| &**value)),
    ];
    tx.execute_many(
        "insert into entry (library, key, place, seen_in, value) {rows}
         on conflict (library, key) do update set place = excluded.place,
             seen_in = excluded.seen_in, value = excluded.value",
        &[],
        &columns,
    )?;
    // The index has the author's name, and facts such as the types of media, which a partial object may change, too.
    index_row::add_unindexed(tx, places)?;
    Ok(is_whole)
}

/// True if a value has the update of an entry alone.
fn is_partial(value: &str) -> bool {
    // Servers write a whole one in this order.
    let rest = value.strip_prefix(PLACE);
    let rest = rest.and_then(|rest| rest.split_once('"'));
    let is_whole = rest.is_some_and(|(_, rest)| rest.starts_with(r#","status":{"#));
    !is_whole && is_partial_entry(value)
}

/// The place in an entry's value; 0 if it has none.
fn place(value: &str) -> i64 {
    // Servers write it first. The rest is long.
    let first = value.strip_prefix(PLACE);
    let first = first.and_then(|rest| rest.split_once('"')?.0.parse::<i64>().ok());
    first.unwrap_or_else(|| {
        let value: Placed<'_> = serde_json::from_str(value).unwrap_or_default();
        value.place.parse().unwrap_or_default()
    })
}

/// The beginning of a value as servers write it.
const PLACE: &str = r#"{"place":""#;

/// The part of an entry's value that says its place.
#[derive(Default, Deserialize)]
struct Placed<'a> {
    #[serde(borrow, default)]
    place: Cow<'a, str>,
}

/// The part of an entry's value that has its post.
#[derive(Deserialize)]
struct Stated<'a> {
    #[serde(borrow)]
    status: &'a RawValue,
}

/// Removes an entry. Returns the number of entries that were removed: 0 or 1.
pub(crate) fn remove(
    tx: &mut Tx<'_>,
    library: &str,
    key: &ObjectKey,
) -> Result<usize, ReplicaError> {
    let removed = tx.execute(
        "delete from entry where library = $1 and key = $2",
        &[&library, &key.as_str()],
    )?;
    Ok(size(removed))
}

/// Removes the entries that did not come in the full sync with this number, and the profiles of authors that only they showed.
/// Returns the number of entries.
pub(crate) fn sweep(tx: &mut Tx<'_>, library: &str, full_sync: u64) -> Result<usize, ReplicaError> {
    author_row::sweep(tx, library, full_sync)?;
    let removed = tx.execute(
        "delete from entry where library = $1 and seen_in <> $2",
        &[&library, &number(full_sync)?],
    )?;
    Ok(size(removed))
}

/// Removes all entries of a library with their authors. Returns the number of entries.
pub(crate) fn remove_all(tx: &mut Tx<'_>, library: &str) -> Result<usize, ReplicaError> {
    author_row::remove_all(tx, library)?;
    let removed = tx.execute("delete from entry where library = $1", &[&library])?;
    Ok(size(removed))
}

/// The number of entries of a library.
pub(crate) fn count(tx: &mut Tx<'_>, library: &str) -> Result<usize, ReplicaError> {
    let sql = "select count(*) as number from entry where library = $1";
    count_by(tx, sql, &[&library])
}

/// Entries of all libraries below a place, and at the place below a library's name, by descending places.
pub(crate) fn below(
    tx: &mut Tx<'_>,
    place: i64,
    library: &str,
    limit: u32,
) -> Result<Vec<EntryRow>, ReplicaError> {
    let sql = format!(
        "select {COLUMNS} from entry where (place, library) < ($1, $2) and place > 0
         order by place desc, library desc limit $3"
    );
    Ok(tx.query(&sql, &[&place, &library, &limit], entry)?)
}

/// Entries of a library below a place, by descending places.
pub(crate) fn below_in(
    tx: &mut Tx<'_>,
    library: &str,
    place: i64,
    limit: u32,
) -> Result<Vec<EntryRow>, ReplicaError> {
    let sql = format!(
        "select {COLUMNS} from entry where library = $1 and place < $2 and place > 0
         order by place desc limit $3"
    );
    Ok(tx.query(&sql, &[&library, &place, &limit], entry)?)
}

/// The entries of all libraries at these places, by descending places.
pub(crate) fn at(tx: &mut Tx<'_>, places: &[i64]) -> Result<Vec<EntryRow>, ReplicaError> {
    let sql = format!(
        "select {COLUMNS} from entry where place {{in $1}} order by place desc, library desc"
    );
    let places = Column::i64(places.iter().copied());
    Ok(tx.query(&sql, &[&places], entry)?)
}

/// The digest of a library's entries.
pub(crate) fn digest(tx: &mut Tx<'_>, library: &str) -> Result<LibraryDigest, ReplicaError> {
    let mut digest = LibraryDigest::default();
    let sql = format!("select {COLUMNS} from entry where library = $1");
    tx.query(&sql, &[&library], |row| {
        let entry = entry(row)?;
        let status = entry.status().map_or("{}", RawValue::get);
        let status = RawObject::parse(status).unwrap_or_default();
        digest.add_entry(
            &entry.key,
            entry.place.unsigned_abs(),
            status.time_ms("edited_at"),
            // Of a visibility that is not known, the narrowest is assumed.
            visibility(&status).unwrap_or(Visibility::Direct),
        );
        Ok(())
    })?;
    Ok(digest)
}

/// True if any library has an entry with this key at a place or above it.
pub(crate) fn is_at_or_above(tx: &mut Tx<'_>, key: &str, place: i64) -> Result<bool, ReplicaError> {
    let sql = "select count(*) as number from subscription s
         join entry e on e.library = s.library and e.key = $1 where e.place >= $2";
    Ok(count_by(tx, sql, &[&key, &place])? > 0)
}

fn entry(row: &Row<'_>) -> Result<EntryRow, DbError> {
    Ok(EntryRow {
        library: row.text("library")?,
        key: row.text("key")?,
        place: row.i64("place")?,
        value: row.text("value")?,
    })
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

const COLUMNS: &str = "library, key, place, value";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_found_wherever_it_is_written() {
        for (value, expected) in [
            (r#"{"place":"12","status":{"place":"7"}}"#, 12),
            (r#"{"status":{"place":"7"},"place":"12"}"#, 12),
            (r#"{ "place": "12" }"#, 12),
            (r#"{"place":"\u0031","status":{}}"#, 1),
            (r#"{"place":"9223372036854775808"}"#, 0),
            (r#"{"place":12}"#, 0),
            (r#"{"status":{"place":"7"}}"#, 0),
            ("null", 0),
        ] {
            assert_eq!(place(value), expected, "{value}");
        }
    }
}
