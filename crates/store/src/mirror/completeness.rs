//! Counts of a source's entries, for the report on its completeness.

use driftline_core::upstream_id::Key;
use driftline_db::Tx;

use crate::{error::StoreError, id_types::SourceKey, library, mirror::quarantine};

/// The stored part of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCounts {
    /// The number of entries, including tombstones.
    pub entries: u64,
    /// The number of entries that are neither tombstones nor have left.
    pub live: u64,
    /// The number of entries whose posts the source does not list any more, but that are not known
    /// to be deleted.
    pub left: u64,
    /// The number of live entries whose posts have changed since they were stored.
    pub changed: u64,
    /// The number of live entries that only a stream has shown.
    pub streamed: u64,
    /// The number of items of pages from which no post could be read.
    pub unreadable: u64,
    /// The lowest position.
    pub first: Option<Key>,
    /// The highest position.
    pub last: Option<Key>,
    /// The last USN of the source's library.
    pub update_count: i64,
}

/// Counts the entries of a source. Reads all of them.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn counts(tx: &mut Tx<'_>, source: SourceKey) -> Result<StoredCounts, StoreError> {
    let update_count = library::update_count(tx, library::LibraryOwner::Source(source))?;
    let update_count = update_count.ok_or(StoreError::NoSource)?;
    let unreadable = quarantine::count(tx, source)?;
    Ok(tx.query_one(
        "select count(*) as entries, count(case when not gone then 1 end) as live,
             count(left_at_ms) as departed,
             count(case when not gone and usn <> first_usn then 1 end) as changed,
             count(case when not gone and streamed then 1 end) as streamed,
             min(position) as first, max(position) as last
         from entry where source_id = $1 and instance_id = $2",
        &[&source.id(), &source.instance_id()],
        |row| {
            Ok(StoredCounts {
                entries: row.i64("entries")?.unsigned_abs(),
                live: row.i64("live")?.unsigned_abs(),
                left: row.i64("departed")?.unsigned_abs(),
                changed: row.i64("changed")?.unsigned_abs(),
                streamed: row.i64("streamed")?.unsigned_abs(),
                unreadable,
                first: row.opt_str("first")?.map(Key::from_stored),
                last: row.opt_str("last")?.map(Key::from_stored),
                update_count,
            })
        },
    )?)
}
