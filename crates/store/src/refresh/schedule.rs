//! The index of due times.

use driftline_db::{Column, DbError, Dialect, Tx};

use crate::database_clock::now_sql;

/// A row of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) bucket: i64,
    pub(crate) due_at_ms: i64,
    pub(crate) post_id: i64,
}

pub(crate) fn insert(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(), DbError> {
    if slots.is_empty() {
        return Ok(());
    }
    tx.execute_many_later(
        "insert into schedule (bucket, due_at_ms, post_id) {rows}",
        &[],
        &columns(slots),
    )
}

/// Removes rows one by one, the fastest way on SQLite.
pub(crate) fn remove(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(), DbError> {
    for slot in slots {
        tx.execute(
            "delete from schedule where bucket = $1 and due_at_ms = $2 and post_id = $3",
            &[&slot.bucket, &slot.due_at_ms, &slot.post_id],
        )?;
    }
    Ok(())
}

/// Removes rows that this transaction has locked, so that they exist.
pub(crate) fn remove_later(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(), DbError> {
    if slots.is_empty() {
        return Ok(());
    }
    tx.execute_many_later(
        "delete from schedule where (bucket, due_at_ms, post_id) in
             (select bucket, due_at_ms, post_id from {rows as r(bucket, due_at_ms, post_id)})",
        &[],
        &columns(slots),
    )
}

/// Removes the rows that no worker has claimed or is claiming; returns them.
pub(crate) fn take(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<Vec<Slot>, DbError> {
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    let free = tx.query_each(
        "select bucket, due_at_ms, post_id from schedule
         where bucket = {row 1} and due_at_ms = {row 2} and post_id = {row 3} {skip_locked}",
        &[],
        &columns(slots),
        |row| {
            Ok(Slot {
                bucket: row.i64(0)?,
                due_at_ms: row.i64(1)?,
                post_id: row.i64(2)?,
            })
        },
    )?;
    remove_later(tx, &free)?;
    Ok(free)
}

/// The first rows of a bucket due by then, the earliest first, without those that others are
/// claiming. On PostgreSQL they stay locked, and each comes with the time by the database's clock, Unix ms.
pub(crate) fn first(
    tx: &mut Tx<'_>,
    bucket: i64,
    until_ms: i64,
    limit: usize,
) -> Result<Vec<(Slot, i64)>, DbError> {
    let now_ms = match tx.dialect() {
        // Claims in memory go by the process's clock.
        Dialect::Sqlite => "0",
        Dialect::Postgres => now_sql(Dialect::Postgres),
    };
    tx.query(
        &format!(
            "select due_at_ms, post_id, {now_ms} from schedule
             where bucket = $1 and due_at_ms <= $2
             order by due_at_ms, post_id limit $3 {{skip_locked}}"
        ),
        &[&bucket, &until_ms, &(limit as i64)],
        |row| {
            let slot = Slot {
                bucket,
                due_at_ms: row.i64(0)?,
                post_id: row.i64(1)?,
            };
            Ok((slot, row.i64(2)?))
        },
    )
}

/// The first rows of a bucket due after then, without those that others are claiming. On PostgreSQL
/// they stay locked.
pub(crate) fn after(
    tx: &mut Tx<'_>,
    bucket: i64,
    after_ms: i64,
    limit: usize,
) -> Result<Vec<Slot>, DbError> {
    tx.query(
        "select due_at_ms, post_id from schedule
         where bucket = $1 and due_at_ms > $2
         order by due_at_ms, post_id limit $3 {skip_locked}",
        &[&bucket, &after_ms, &(limit as i64)],
        |row| {
            Ok(Slot {
                bucket,
                due_at_ms: row.i64(0)?,
                post_id: row.i64(1)?,
            })
        },
    )
}

/// How many rows of some buckets are due by then, those that others are claiming included; of each
/// bucket at most `limit` are counted. For PostgreSQL, in one round trip.
pub(crate) fn count_due(
    tx: &mut Tx<'_>,
    buckets: impl Iterator<Item = i64>,
    until_ms: i64,
    limit: usize,
) -> Result<usize, DbError> {
    let counts = tx.query_each(
        "select count(*) from (select 1 from schedule
             where bucket = {row 1} and due_at_ms <= $1 limit $2) as due",
        &[&until_ms, &(limit as i64)],
        &[Column::i64(buckets)],
        |row| row.i64(0),
    )?;
    Ok(counts.into_iter().sum::<i64>().unsigned_abs() as usize)
}

/// When the first post of a bucket is due, Unix ms.
pub(crate) fn next_due_ms(tx: &mut Tx<'_>, bucket: i64) -> Result<Option<i64>, DbError> {
    tx.query_opt(
        "select due_at_ms from schedule where bucket = $1 order by due_at_ms limit 1",
        &[&bucket],
        |row| row.i64(0),
    )
}

fn columns(slots: &[Slot]) -> [Column<'static>; 3] {
    [
        Column::i64(slots.iter().map(|slot| slot.bucket)),
        Column::i64(slots.iter().map(|slot| slot.due_at_ms)),
        Column::i64(slots.iter().map(|slot| slot.post_id)),
    ]
}
