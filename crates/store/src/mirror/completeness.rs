//! Counts of a source's entries, for the report on its completeness.

use driftline_core::upstream_id::Key;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    ids::{SourceId, sql},
};

/// How much of a source is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredCounts {
    /// Entries, tombstones included.
    pub entries: u64,
    /// Entries that are not tombstones.
    pub live: u64,
    /// Live entries whose post has changed since it was stored.
    pub changed: u64,
    /// Live entries that only a stream has shown, and no page.
    pub streamed: u64,
    /// The lowest position.
    pub first: Option<Key>,
    /// The highest position.
    pub last: Option<Key>,
    /// The last USN of the source's library.
    pub update_count: i64,
}

/// Counts the entries of a source. Reads all of them.
pub fn counts(tx: &mut Tx<'_>, source: SourceId) -> Result<StoredCounts, StoreError> {
    let id = sql(source);
    let update_count = tx
        .query_opt(
            "select update_count from source where id = $1",
            &[&id],
            |row| row.i64(0),
        )?
        .ok_or(StoreError::NoSource)?;
    let counts = tx.query_one(
        "select count(*), count(case when not gone then 1 end),
             count(case when not gone and usn <> first_usn then 1 end), min(position), max(position),
             count(case when not gone and streamed then 1 end)
         from entry where source_id = $1",
        &[&id],
        |row| {
            let key = |text: Option<&str>| text.map(Key::from_stored);
            Ok(StoredCounts {
                entries: row.i64(0)?.unsigned_abs(),
                live: row.i64(1)?.unsigned_abs(),
                changed: row.i64(2)?.unsigned_abs(),
                streamed: row.i64(5)?.unsigned_abs(),
                first: key(row.opt_str(3)?),
                last: key(row.opt_str(4)?),
                update_count,
            })
        },
    )?;
    Ok(counts)
}
