//! The number that rises with every event that all members must notice at once.

use driftline_db::{DbError, Row, Tx};

use crate::{
    database_clock::{is_live_sql, now_sql},
    error::StoreError,
};

/// The state that members compare to decide about a new check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Rises with each change of sources, returned leases and members.
    pub number: i64,
    /// The number of members with a lease. The end of a lease does not raise the number.
    pub live: i64,
}

/// The present state, in one statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
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

/// Raises the number. It must be the last statement of its transaction, because every such writer
/// waits for the row from here to the commit.
pub(crate) fn raise_later(tx: &mut Tx<'_>) -> Result<(), DbError> {
    tx.execute_later("update sharing set change = change + 1 where one = 1", &[])
}
