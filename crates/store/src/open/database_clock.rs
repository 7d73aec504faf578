//! The database's own clock, by which leases end: the processes' clocks do not matter to them.
//!
//! That clock can be set back, too. A lease that ends further ahead than any lease lasts was given before, and has
//! ended: its holder renews it by the clock as it is now, or is gone.

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

/// True if a lease that ends at that time is in force, both Unix ms by the database's clock.
pub fn is_live(until_ms: i64, now_ms: i64) -> bool {
    until_ms > now_ms && until_ms <= now_ms.saturating_add(MAX_LEASE_MS)
}

/// [`is_live`] in SQL, for a column and a clock.
pub(crate) fn is_live_sql(until_ms: &str, now_ms: &str) -> String {
    format!("({until_ms} > {now_ms} and {until_ms} <= {now_ms} + {MAX_LEASE_MS})")
}

/// Longer than a source, a member, a node or a reservation is leased at a time, ms.
pub const MAX_LEASE_MS: i64 = 600_000;

/// [`now_sql`] in a statement that changes rows of an instance. A distributed database takes there no
/// clock but the statement's start, which is earlier if it waited for the row: leases are then shorter,
/// and fewer count as ended.
pub(crate) fn modification_now_sql(tx: &Tx<'_>) -> &'static str {
    match tx.is_distributed() {
        true => "cast(extract(epoch from statement_timestamp()) * 1000 as bigint)",
        false => now_sql(tx.dialect()),
    }
}
