//! The index of due times.

use driftline_db::{Column, DbError, Dialect, PendingRows, Row, ToValue, Tx};

use super::instance_of;
use crate::{database_clock::now_sql, new_ids::TakenIds};

/// A row of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) bucket: i64,
    pub(crate) due_at_ms: i64,
    pub(crate) post_id: i64,
}

/// The columns that [`Slot::from_row`] reads.
pub(crate) const COLUMNS: &str = "bucket, due_at_ms, post_id";
/// The columns that [`columns`] provides.
const ROW: &str = "bucket, due_at_ms, post_id, instance_id";

impl Slot {
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Slot, DbError> {
        Ok(Slot {
            bucket: row.i64("bucket")?,
            due_at_ms: row.i64("due_at_ms")?,
            post_id: row.i64("post_id")?,
        })
    }
}

/// The rows of a batch: bucket, due time, post and instance.
pub(crate) fn columns(slots: &[Slot]) -> [Column<'static>; 4] {
    [
        Column::i64(slots.iter().map(|slot| slot.bucket)),
        Column::i64(slots.iter().map(|slot| slot.due_at_ms)),
        Column::i64(slots.iter().map(|slot| slot.post_id)),
        Column::i64(slots.iter().map(|slot| instance_of(slot.bucket))),
    ]
}

pub(crate) fn insert(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(), DbError> {
    insert_new(tx, slots, &TakenIds::NONE)
}

/// [`insert`] for posts whose IDs may be from `ids`.
pub(crate) fn insert_new(tx: &mut Tx<'_>, slots: &[Slot], ids: &TakenIds) -> Result<(), DbError> {
    let sql = format!("insert into schedule ({ROW}) {{rows}}");
    let [bucket, due_at_ms, _, instance_id] = columns(slots);
    let post_id = ids.column(slots.iter().map(|slot| slot.post_id));
    tx.execute_many_later(&sql, &[], &[bucket, due_at_ms, post_id, instance_id])
}

/// Removes rows one by one, the fastest way on SQLite.
pub(crate) fn remove(tx: &mut Tx<'_>, slots: impl Iterator<Item = Slot>) -> Result<(), DbError> {
    for slot in slots {
        tx.execute(
            "delete from schedule
             where bucket = $1 and due_at_ms = $2 and post_id = $3 and instance_id = $4",
            &[
                &slot.bucket,
                &slot.due_at_ms,
                &slot.post_id,
                &instance_of(slot.bucket),
            ],
        )?;
    }
    Ok(())
}

/// Removes rows of one instance that this transaction has locked, so they exist.
pub(crate) fn remove_later(tx: &mut Tx<'_>, slots: &[Slot]) -> Result<(), DbError> {
    let Some(first) = slots.first() else {
        return Ok(());
    };
    let sql = format!(
        "delete from schedule where instance_id = $1 and ({COLUMNS}) in
             (select {COLUMNS} from {{rows as r({ROW})}})"
    );
    tx.execute_many_later(&sql, &[&instance_of(first.bucket)], &columns(slots))
}

/// Locks the due times of posts, except for those that another transaction has locked, together
/// with the next query. A post's refresh state that is read afterwards is not changed by others.
pub(crate) fn lock_free_later(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: impl Iterator<Item = i64>,
) -> Result<PendingRows<'static, Slot>, DbError> {
    let sql = format!(
        "select {COLUMNS} from schedule where instance_id = $1 and ({COLUMNS}) =
             (select {COLUMNS} from freshness where post_id = {{row 1}} and instance_id = $1)
         {{skip_locked}}"
    );
    tx.query_each_later(
        &sql,
        &[&instance_id],
        &[Column::i64(post_ids)],
        Slot::from_row,
    )
}

/// The first rows of some buckets of one instance that are due by `until_ms`, bucket by bucket, the
/// earliest first, at most `limit` in all, without those that others are claiming. On PostgreSQL
/// they stay locked, and each comes with the time by the database's clock, in Unix ms.
pub(crate) fn first(
    tx: &mut Tx<'_>,
    buckets: &[i64],
    until_ms: i64,
    limit: usize,
) -> Result<Vec<(Slot, i64)>, DbError> {
    let now_ms = match tx.dialect() {
        // Claims in memory use the process's clock.
        Dialect::Sqlite => "0",
        Dialect::Postgres => now_sql(Dialect::Postgres),
    };
    // The buckets are read one after the other, and no further row is locked once there are enough.
    let sql = format!(
        "select {COLUMNS}, {now_ms} as now_ms from ({}) as found limit $2",
        of_each(buckets, "due_at_ms <= $1")
    );
    query_each_bucket(tx, &sql, buckets, until_ms, limit, |row| {
        Ok((Slot::from_row(row)?, row.i64("now_ms")?))
    })
}

/// The first rows of each of some buckets of one instance that are due after `after_ms`, at most
/// `limit` of each, without those that others are claiming. On PostgreSQL they stay locked.
pub(crate) fn after(
    tx: &mut Tx<'_>,
    buckets: &[i64],
    after_ms: i64,
    limit: usize,
) -> Result<Vec<Slot>, DbError> {
    let sql = of_each(buckets, "due_at_ms > $1");
    query_each_bucket(tx, &sql, buckets, after_ms, limit, Slot::from_row)
}

/// A query for the first `$2` rows of each bucket, `$4` and so on, of the instance `$3`.
fn of_each(buckets: &[i64], condition: &str) -> String {
    let of_one = |index: usize| {
        format!(
            "select {COLUMNS} from (select {COLUMNS} from schedule
                 where bucket = ${} and instance_id = $3 and {condition}
                 order by due_at_ms, post_id limit $2 {{skip_locked}}) as of_{index}",
            index + 4
        )
    };
    let all: Vec<String> = (0..buckets.len()).map(of_one).collect();
    all.join(" union all ")
}

fn query_each_bucket<T>(
    tx: &mut Tx<'_>,
    sql: &str,
    buckets: &[i64],
    bound_ms: i64,
    limit: usize,
    row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
) -> Result<Vec<T>, DbError> {
    let limit = limit as i64;
    let instance_id = buckets.first().map_or(0, |bucket| instance_of(*bucket));
    let mut params: Vec<&dyn ToValue> = vec![&bound_ms, &limit, &instance_id];
    params.extend(buckets.iter().map(|bucket| bucket as &dyn ToValue));
    tx.query(sql, &params, row)
}

/// The number of rows of some buckets of one instance that are due by `until_ms`, including those
/// that others are claiming. At most `limit` rows of each bucket are counted. For PostgreSQL, in
/// one round trip.
pub(crate) fn count_due(
    tx: &mut Tx<'_>,
    buckets: impl Iterator<Item = i64>,
    until_ms: i64,
    limit: usize,
) -> Result<usize, DbError> {
    let (buckets, instance_id) = of_instance(buckets);
    let counts = tx.query_each(
        "select count(*) as posts from (select 1 from schedule
             where bucket = {row 1} and instance_id = $3 and due_at_ms <= $1 limit $2) as due",
        &[&until_ms, &(limit as i64), &instance_id],
        &[buckets],
        |row| row.i64("posts"),
    )?;
    Ok(counts.into_iter().sum::<i64>().unsigned_abs() as usize)
}

/// The first due time in some buckets of one instance, in Unix ms.
pub(crate) fn next_due_ms(
    tx: &mut Tx<'_>,
    buckets: impl Iterator<Item = i64>,
) -> Result<Option<i64>, DbError> {
    let (buckets, instance_id) = of_instance(buckets);
    let first = tx.query_each(
        "select due_at_ms from schedule
         where bucket = {row 1} and instance_id = $1 order by due_at_ms",
        &[&instance_id],
        &[buckets],
        |row| row.i64("due_at_ms"),
    )?;
    Ok(first.into_iter().min())
}

/// Buckets with their instance.
fn of_instance(buckets: impl Iterator<Item = i64>) -> (Column<'static>, i64) {
    let buckets: Vec<i64> = buckets.collect();
    let instance_id = buckets.first().map_or(0, |bucket| instance_of(*bucket));
    (Column::i64(buckets), instance_id)
}
