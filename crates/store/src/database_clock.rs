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

/// [`now_sql`] in a statement that changes rows of an instance. A distributed database takes there no
/// clock but the statement's start, which is earlier if it waited for the row: leases are then shorter,
/// and fewer count as ended.
pub(crate) fn modification_now_sql(tx: &Tx<'_>) -> &'static str {
    match tx.is_distributed() {
        true => "cast(extract(epoch from statement_timestamp()) * 1000 as bigint)",
        false => now_sql(tx.dialect()),
    }
}
