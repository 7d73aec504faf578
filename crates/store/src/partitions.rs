//! The partitions of the tables that only grow: on PostgreSQL one for each month, made ahead of time.
//!
//! Rows that no month takes lie in the default partition, where they are found as well, but do not go
//! with their month. Making a month takes a lock on that one that excludes everybody, so it must be short: the wait for
//! it is bounded, since others queue behind it, and it is empty or nearly so, since months are made ahead.
//! `docs/sql.md` says what is partitioned and why.

mod month;

use driftline_db::{Db, DbError, Dialect, Root, Tx};

pub use month::{Month, Span, missing, reach_ms};

use crate::{database_clock, error::StoreError, store::Store};

/// The tables that are partitioned by month of `at_ms`.
pub const TABLES: [&str; 2] = ["count_history", "post_history"];

/// How many months after the present one have a partition.
pub const MONTHS_AHEAD: i64 = 3;

/// How far a table's partitions reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The table.
    pub table: &'static str,
    /// The database's time when that was looked at, Unix ms.
    pub now_ms: i64,
    /// Until when every time from then on has a partition of its month, Unix ms.
    pub until_ms: i64,
    /// How many rows lie in the default partition: [`MAX_COUNTED`] stands for any more.
    pub default_rows: i64,
}

/// Makes the partitions that are missing, up to [`MONTHS_AHEAD`]. Any number of processes may do so at once.
///
/// # Errors
/// The first one; what another error kept from being made does not keep the rest from it. [`DbError::Busy`]
/// if others held the table for too long: try it later.
pub async fn make_ahead(store: &Store) -> Result<(), StoreError> {
    make_ahead_in(store).await
}

/// How far the partitions of each table reach; none where no table is partitioned.
///
/// # Errors
/// [`StoreError::Db`] if the database failed.
pub async fn reaches(store: &Store) -> Result<Vec<Reach>, StoreError> {
    if store.dialect() == Dialect::Sqlite {
        return Ok(Vec::new());
    }
    store
        .read(|tx| {
            let now_ms = database_clock::now_ms(tx)?;
            let mut reaches = Vec::new();
            for table in TABLES {
                let Some(partitions) = partitions(tx, table)? else {
                    continue;
                };
                let count = format!(
                    "select count(*) as found from (select 1 from {table}_default limit {MAX_COUNTED}) as bounded"
                );
                reaches.push(Reach {
                    table,
                    now_ms,
                    until_ms: reach_ms(&partitions, now_ms),
                    default_rows: tx.query_one(&count, &[], |row| row.i64("found"))?,
                });
            }
            Ok(reaches)
        })
        .await
}

/// [`make_ahead`], before there is a [`Store`].
pub(crate) async fn make_ahead_in(db: &Db) -> Result<(), StoreError> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    let wanted = db.read(|tx| {
        let now_ms = database_clock::now_ms(tx)?;
        let mut wanted = Vec::new();
        for table in TABLES {
            if let Some(partitions) = partitions(tx, table)? {
                let months = missing(&partitions, now_ms, MONTHS_AHEAD);
                wanted.extend(months.into_iter().map(|month| (table, month)));
            }
        }
        Ok::<_, DbError>(wanted)
    });
    let mut result = Ok(());
    for (table, month) in wanted.await? {
        let made = db.write(Root::none(), move |tx| make(tx, table, month));
        result = result.and(made.await);
    }
    Ok(result?)
}

/// Makes the partition of a month, unless somebody has, and moves there what the default partition has of
/// it.
fn make(tx: &mut Tx<'_>, table: &'static str, month: Month) -> Result<(), DbError> {
    set(tx, "lock_timeout", LOCK_TIMEOUT)?;
    let is_placed = is_placed(tx, table)?;
    if is_placed {
        // The workers wait for locks of their own.
        set(tx, "citus.propagate_set_commands", "local")?;
        set(tx, "lock_timeout", LOCK_TIMEOUT)?;
    }
    // Only others that make or attach partitions wait for this, and a vacuum of all partitions together.
    tx.execute_later(
        &format!("lock table {table} in share update exclusive mode"),
        &[],
    )?;
    let Span { from_ms, until_ms } = month.span();
    let now_missing = |partitions: Vec<Span>| missing(&partitions, from_ms, 0) == [month];
    if !partitions(tx, table)?.is_some_and(now_missing) {
        return Ok(());
    }
    let partition = format!("{table}_{month}");
    // Not later: what names it is prepared before what waits to be sent.
    tx.execute(
        &format!("create table {partition} (like {table} including all)"),
        &[],
    )?;
    if is_placed {
        let sql = "select create_distributed_table($1::text::regclass, 'instance_id', colocate_with => $2)";
        tx.query(sql, &[&partition, &table], |_| Ok(()))?;
    }
    // From here on who reads the table waits, and who writes to the default partition.
    set(tx, "statement_timeout", STATEMENT_TIMEOUT)?;
    tx.execute_later(
        &format!("lock table {table}_default in access exclusive mode"),
        &[],
    )?;
    let of_month = format!("from {table}_default where at_ms >= $1 and at_ms < $2");
    let copied = tx.execute(
        &format!("insert into {partition} select * {of_month}"),
        &[&from_ms, &until_ms],
    )?;
    if copied > 0 {
        let removed = tx.execute(&format!("delete {of_month}"), &[&from_ms, &until_ms])?;
        if removed != copied {
            return Err(DbError::Other(format!(
                "{table}_default has {removed} rows of a month of which {copied} were copied"
            )));
        }
    }
    tx.execute(
        &format!(
            "alter table {table} attach partition {partition} for values from ({from_ms}) to ({until_ms})"
        ),
        &[],
    )?;
    tracing::info!(table, %month, moved = copied, "a partition was made");
    Ok(())
}

/// The times of a table's partitions but for the default one; `None` if it is not partitioned.
fn partitions(tx: &mut Tx<'_>, table: &str) -> Result<Option<Vec<Span>>, DbError> {
    let bounds = tx.query(
        "select pg_get_expr(c.relpartbound, c.oid) as bound
         from pg_partitioned_table p left join pg_inherits i on i.inhparent = p.partrelid
         left join pg_class c on c.oid = i.inhrelid
         where p.partrelid = to_regclass($1)",
        &[&table],
        |row| row.opt_text("bound"),
    )?;
    if bounds.is_empty() {
        return Ok(None);
    }
    let mut spans = Vec::new();
    for bound in bounds.into_iter().flatten() {
        let span = Span::of_bound(&bound)
            .map_err(|bound| DbError::invalid(format!("a partition of {table}: {bound}")))?;
        spans.extend(span);
    }
    Ok(Some(spans))
}

/// Whether a table's rows lie on several nodes. A store may count as distributed where there is no cluster.
fn is_placed(tx: &mut Tx<'_>, table: &str) -> Result<bool, DbError> {
    if !tx.is_distributed() {
        return Ok(false);
    }
    let catalog = "select to_regclass('pg_catalog.pg_dist_partition') is not null as is_there";
    if !tx.query_one(catalog, &[], |row| row.bool("is_there"))? {
        return Ok(false);
    }
    tx.query_one(
        "select exists (select 1 from pg_dist_partition where logicalrelid = to_regclass($1)) as is_placed",
        &[&table],
        |row| row.bool("is_placed"),
    )
}

/// Sets something for this transaction.
fn set(tx: &mut Tx<'_>, name: &str, value: &str) -> Result<(), DbError> {
    tx.execute_later(&format!("set local {name} = '{value}'"), &[])
}

/// How many rows of a default partition are counted.
pub const MAX_COUNTED: i64 = 10_000;
/// How long others may have to queue behind a lock that is waited for.
const LOCK_TIMEOUT: &str = "200ms";
/// How long one statement may take while the default partition is locked: moving what it has of a month, or
/// reading it to see that it has nothing more of it.
const STATEMENT_TIMEOUT: &str = "5s";
