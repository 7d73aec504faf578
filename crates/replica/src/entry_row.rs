use driftline_core::sync::{ObjectKey, SyncedObject};
use driftline_db::{Column, DbError, Row, ToValue, Tx};

use crate::{ReplicaError, author_row, index_row, object_row::number};

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
}

/// Stores an object of a source's library, which came in the full sync with this number or after it.
pub(crate) fn put(
    tx: &mut Tx<'_>,
    library: &str,
    object: &SyncedObject,
    full_sync: u64,
) -> Result<(), ReplicaError> {
    let place = object.value["place"].as_str();
    let place: i64 = place.and_then(|text| text.parse().ok()).unwrap_or_default();
    let (seen_in, value) = (number(full_sync)?, object.value.to_string());
    let parameters: [&dyn ToValue; 5] = [&library, &object.key.as_str(), &place, &seen_in, &value];
    tx.execute(
        "insert into entry (library, key, place, seen_in, value) values ($1, $2, $3, $4, $5)
         on conflict (library, key) do update set place = excluded.place,
             seen_in = excluded.seen_in, value = excluded.value",
        &parameters,
    )?;
    index_row::add_unindexed(tx, place)
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

/// Removes the entries that did not come in the full sync with this number. Returns their number.
pub(crate) fn sweep(tx: &mut Tx<'_>, library: &str, full_sync: u64) -> Result<usize, ReplicaError> {
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
    let count = tx.query_one(
        "select count(*) as entries from entry where library = $1",
        &[&library],
        |row| row.i64("entries"),
    )?;
    Ok(usize::try_from(count).unwrap_or_default())
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
    let count = tx.query_one(
        "select count(*) as entries from subscription s
         join entry e on e.library = s.library and e.key = $1 where e.place >= $2",
        &[&key, &place],
        |row| row.i64("entries"),
    )?;
    Ok(count > 0)
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
