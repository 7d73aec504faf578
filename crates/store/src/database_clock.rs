//! The database's own clock, by which leases end: the processes' clocks do not matter to them.

use driftline_db::{DbError, Dialect, Tx};

/// The database's clock as it runs, Unix ms.
pub fn now_ms(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    let now = now_sql(tx.dialect());
    tx.query_one(&format!("select {now} as now_ms"), &[], |row| {
        row.i64("now_ms")
    })
}

/// The database's clock in SQL, Unix ms. Not the transaction's start: it may have waited for the
/// row.
pub(crate) fn now_sql(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "cast(unixepoch('subsec') * 1000 as integer)",
        Dialect::Postgres => "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)",
    }
}
