//! Libraries: what one owner keeps and syncs, under one sequence of update sequence numbers (USNs).
//!
//! Today each source owns one, which holds its entries. Its last USN stands in the source's row, so
//! that the row that a commit locks and writes anyway also orders the USNs.

use driftline_db::{DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{SourceId, sql},
};

/// A library, whose USNs this transaction alone takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// Its owner: a source, whose row the transaction has locked. The library's ID is the source's.
    pub(crate) source_id: i64,
    update_count: i64,
    /// The last USN before this transaction.
    before: i64,
}

impl Library {
    /// The library in a locked row of `source` with the column `update_count`.
    pub(crate) fn of_source(source_id: i64, row: &Row<'_>) -> Result<Library, DbError> {
        let update_count = row.i64("update_count")?;
        Ok(Library {
            source_id,
            update_count,
            before: update_count,
        })
    }

    /// Takes the next USN.
    pub(crate) fn next_usn(&mut self) -> i64 {
        self.update_count += 1;
        self.update_count
    }

    /// The last USN, this transaction's included.
    pub(crate) fn update_count(&self) -> i64 {
        self.update_count
    }

    /// Whether this transaction has taken a USN.
    pub(crate) fn has_changed(&self) -> bool {
        self.update_count != self.before
    }
}

/// The last USN of a source's library.
pub(crate) fn update_count(tx: &mut Tx<'_>, source: SourceId) -> Result<i64, StoreError> {
    tx.query_opt(
        "select update_count from source where id = $1",
        &[&sql(source)],
        |row| row.i64("update_count"),
    )?
    .ok_or(StoreError::NoSource)
}
