use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    iter::repeat_n,
};

use driftline_core::sync::{ObjectKey, RawJson, SyncedObject};
use driftline_db::{Column, DbError, Row, Tx};
use driftline_mastodon::{is_partial_entry, merge_partial_entry};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    ReplicaError, author_row, index_row,
    object_row::{count_by, number},
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
    let mut values = Values::new();
    let mut keys = HashSet::new();
    let mut unindexed = BTreeMap::new();
    let mut is_whole = true;
    for object in objects {
        let key = object.key.as_str();
        let Some(partial) = partial_value(&object.value) else {
            let value = object.value.get();
            unindexed.insert(key, place(value));
            keys.insert(key);
            values.push((key, Cow::Borrowed(value)));
            continue;
        };
        // Its update belongs to the value that came before it.
        if keys.contains(key) {
            put_whole(tx, library, &values, full_sync)?;
            values.clear();
            keys.clear();
        }
        let Some(whole) = merge(tx, library, key, partial)? else {
            is_whole = false;
            continue;
        };
        // The index has the author's name, and facts such as the types of media, which an update may change.
        unindexed.insert(key, place(&whole));
        keys.insert(key);
        values.push((key, Cow::Owned(whole)));
    }
    put_whole(tx, library, &values, full_sync)?;
    index_row::add_unindexed(tx, unindexed.into_values().collect())?;
    Ok(is_whole)
}

/// Keys and values that are stored at once, in the order in which they came.
type Values<'a> = Vec<(&'a str, Cow<'a, str>)>;

fn put_whole(
    tx: &mut Tx<'_>,
    library: &str,
    values: &[(&str, Cow<'_, str>)],
    full_sync: u64,
) -> Result<(), ReplicaError> {
    let full_sync = number(full_sync)?;
    let columns = [
        Column::text(repeat_n(library, values.len())),
        Column::text(values.iter().map(|(key, _)| *key)),
        Column::i64(values.iter().map(|(_, value)| place(value))),
        Column::i64(repeat_n(full_sync, values.len())),
        Column::text(values.iter().map(|(_, value)| &**value)),
    ];
    tx.execute_many(
        "insert into entry (library, key, place, seen_in, value) {rows}
         on conflict (library, key) do update set place = excluded.place,
             seen_in = excluded.seen_in, value = excluded.value",
        &[],
        &columns,
    )?;
    Ok(())
}

/// The value of a partial object; `None` if it is a whole one.
fn partial_value(value: &RawJson) -> Option<&RawJson> {
    // Servers write a whole one in this order.
    let rest = value.get().strip_prefix(PLACE);
    let is_whole = rest.is_some_and(|rest| {
        rest.split_once('"')
            .is_some_and(|(_, rest)| rest.starts_with(r#","status":{"#))
    });
    if is_whole {
        return None;
    }
    is_partial_entry(value.get()).then_some(value)
}

/// The value of an entry that is here with the update of a partial object; `None` if it is not here, or they do not fit.
fn merge(
    tx: &mut Tx<'_>,
    library: &str,
    key: &str,
    partial: &RawJson,
) -> Result<Option<String>, ReplicaError> {
    let known = tx.query_opt(
        "select value from entry where library = $1 and key = $2",
        &[&library, &key],
        |row| row.text("value"),
    )?;
    Ok(known.and_then(|known| merge_partial_entry(&known, partial.get())))
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

/// Entries of a library after a key, by their keys.
pub(crate) fn after_key(
    tx: &mut Tx<'_>,
    library: &str,
    key: &str,
    limit: u32,
) -> Result<Vec<EntryRow>, ReplicaError> {
    let sql = format!(
        "select {COLUMNS} from entry where library = $1 and key > $2 order by key limit $3"
    );
    Ok(tx.query(&sql, &[&library, &key, &limit], entry)?)
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
