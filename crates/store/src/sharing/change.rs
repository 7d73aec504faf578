//! The number that rises with everything that all members are to notice at once.

use driftline_db::{DbError, Row, Tx};

use crate::{
    database_clock::{is_live_sql, now_sql},
    error::StoreError,
};

/// What members compare to find out whether to look at everything again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Rises with each change of sources, leases given back and members.
    pub number: i64,
    /// How many members have a lease: ends of leases raise no number.
    pub live: i64,
}

/// The present state, in one statement.
pub fn current(tx: &mut Tx<'_>) -> Result<Change, StoreError> {
    let query = format!("select {}", columns(tx));
    Ok(tx.query_one(&query, &[], Change::from_row)?)
}

impl Change {
    /// Reads the [`columns`].
    pub(super) fn from_row(row: &Row<'_>) -> Result<Self, DbError> {
        Ok(Self {
            number: row.i64("change")?,
            live: row.i64("live")?,
        })
    }
}

/// Two columns for any statement.
pub(super) fn columns(tx: &Tx<'_>) -> String {
    let is_live = is_live_sql("m.lease_until_ms", now_sql(tx.dialect()));
    format!(
        "(select s.change from sharing s where s.one = 1) as change,
         (select count(*) from member m where {is_live}) as live"
    )
}

/// Raises the number. The last statement of its transaction: every writer of the kind waits for the
/// row from here to the commit.
pub(crate) fn raise_later(tx: &mut Tx<'_>) -> Result<(), DbError> {
    tx.execute_later("update sharing set change = change + 1 where one = 1", &[])
}
