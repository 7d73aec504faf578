//! The database's own clock, which determines the ends of leases. The processes' clocks do not
//! affect them.
//!
//! That clock can be set back, too. A lease that ends further ahead than the longest lease was
//! given before such a step, and has ended. Its holder renews it by the present clock, or has
//! ended, too.

use driftline_db::{DbError, Dialect, Tx};

/// The database's present time in Unix ms.
///
/// # Errors
/// [`DbError`] if the database fails.
pub fn now_ms(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    let now = now_sql(tx.dialect());
    tx.query_one(&format!("select {now} as now_ms"), &[], |row| {
        row.i64("now_ms")
    })
}

/// The database's present time in SQL, in Unix ms. It is not the transaction's start, because the
/// transaction may have waited for the row.
pub(crate) fn now_sql(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "cast(unixepoch('subsec') * 1000 as integer)",
        Dialect::Postgres => "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)",
    }
}

/// True if a lease that ends at `until_ms` is valid, both in Unix ms by the database's clock.
pub fn is_live(until_ms: i64, now_ms: i64) -> bool {
    until_ms > now_ms && until_ms <= now_ms.saturating_add(MAX_LEASE_MS)
}

/// [`is_live`] in SQL, for a column and a clock.
pub(crate) fn is_live_sql(until_ms: &str, now_ms: &str) -> String {
    format!("({until_ms} > {now_ms} and {until_ms} <= {now_ms} + {MAX_LEASE_MS})")
}

/// Longer than any lease of a source, a member, a node or a reservation, in ms.
pub const MAX_LEASE_MS: i64 = 600_000;

/// [`now_sql`] for a statement that changes rows of an instance. There a distributed database
/// accepts only the statement's start as clock, which is earlier if it waited for the row. Leases
/// are then shorter, and fewer count as ended.
pub(crate) fn modification_now_sql(tx: &Tx<'_>) -> &'static str {
    match tx.is_distributed() {
        true => "cast(extract(epoch from statement_timestamp()) * 1000 as bigint)",
        false => now_sql(tx.dialect()),
    }
}
