//! Due work, for reports.

use std::collections::HashMap;

use driftline_core::refresh::AgeTable;
use driftline_db::{Column, DbError, PendingRows, Row, ToValue, Tx};
use serde::{Deserialize, Serialize};

use super::{SHARDS, Shards, claim_lease, instance_of, schedule};
use crate::{
    database_clock::now_sql,
    error::StoreError,
    id_types::{InstanceId, from_sql, sql},
};

/// The overdue work of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// The number of stored posts with a due time, including those in leases.
    pub scheduled: u64,
    /// The number of those whose due time has passed.
    pub overdue: u64,
    /// The earliest due time of those, in Unix ms.
    pub first_due_ms: Option<i64>,
    /// The number of pending look-ups, including those in leases.
    pub pending_lookups: u64,
    /// The due time of the first of those, in Unix ms.
    pub first_pending_ms: Option<i64>,
    /// The number of posts and pending look-ups in leases.
    pub leased: u64,
}

/// The first due time in some shards of an instance's schedule, or the end of its first lease of
/// any shard, which returns posts to the schedule. In Unix ms by the clock of `now_ms`.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn next_due_ms(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    shards: Shards,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    let base = sql(instance) * SHARDS;
    let first = schedule::next_due_ms(tx, shards.buckets(base))?;
    let left_ms = claim_lease::first_end_ms(tx, base)?;
    let back_ms = left_ms.map(|left_ms| now_ms.saturating_add(left_ms));
    Ok([first, back_ms].into_iter().flatten().min())
}

/// For each instance, the first due time in these shards among those up to `until_ms`, and the end
/// of the instance's first lease up to then. In Unix ms by the clock of `now_ms`. Reads the first
/// row of each bucket, in one statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn due_by(
    tx: &mut Tx<'_>,
    instances: &[(InstanceId, Shards)],
    (now_ms, until_ms): (i64, i64),
) -> Result<HashMap<InstanceId, i64>, StoreError> {
    let asked = instances
        .chunks(together(tx))
        .map(|some| due_by_later(tx, some, (now_ms, until_ms)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut first: HashMap<InstanceId, i64> = HashMap::new();
    for rows in asked {
        for (bucket, due_at_ms) in tx.rows(rows)? {
            let instance = from_sql(instance_of(bucket))?;
            let due_ms = first.entry(instance).or_insert(due_at_ms);
            *due_ms = due_at_ms.min(*due_ms);
        }
    }
    first.retain(|_, due_ms| *due_ms <= until_ms);
    Ok(first)
}

/// The buckets of some instances and their leases, each with its first due time.
fn due_by_later(
    tx: &mut Tx<'_>,
    instances: &[(InstanceId, Shards)],
    (now_ms, until_ms): (i64, i64),
) -> Result<PendingRows<'static, (i64, i64)>, StoreError> {
    // Each bucket to check, and once the bucket of the instance's leases.
    let mut looks: Vec<(Option<i64>, Option<i64>, i64)> = Vec::new();
    for (instance, shards) in instances {
        let (id, base) = (sql(*instance), sql(*instance) * SHARDS);
        looks.push((None, Some(base), id));
        let buckets = shards.buckets(base);
        looks.extend(buckets.map(|bucket| (Some(bucket), None, id)));
    }
    let mut columns = vec![
        Column::i64(looks.iter().map(|(bucket, ..)| *bucket)),
        Column::i64(looks.iter().map(|(_, bucket, _)| *bucket)),
    ];
    let mut params: Vec<&dyn ToValue> = vec![&until_ms, &now_ms];
    // A single instance determines the node that is read.
    let (single, id);
    if let [(instance, _)] = instances {
        id = sql(*instance);
        params.push(&id);
        single = "$3";
    } else {
        columns.push(Column::i64(looks.iter().map(|(.., id)| *id)));
        single = "{row 3}";
    }
    let clock = now_sql(tx.dialect());
    let ends = claim_lease::end_sql(clock);
    let query = format!(
        "select bucket, min(due_at_ms) as due_at_ms from (
             select bucket, due_at_ms from (
                 select bucket, due_at_ms from schedule
                 where bucket = {{row 1}} and instance_id = {single} and due_at_ms <= $1
                 order by due_at_ms limit 1) as due
             union all
             select bucket, {ends} - {clock} + $2 from claim_lease
             where bucket = {{row 2}} and instance_id = {single}
         ) as times group by bucket"
    );
    Ok(tx.query_each_later(&query, &params, &columns, |row| {
        Ok((row.i64("bucket")?, row.i64("due_at_ms")?))
    })?)
}

/// The due posts of an instance that wait for a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The number of due stored posts and pending look-ups in the schedule, as far as they were
    /// counted.
    pub due: u64,
    /// True if a bucket has more than the counted ones.
    pub has_more: bool,
    /// The earliest due time of those, in Unix ms.
    pub first_due_ms: Option<i64>,
}

/// The waiting posts of each instance, in the order of the instances. Reads at most `limit` rows of
/// each of their buckets, from the first due one, for any size of the schedule.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn waiting(
    tx: &mut Tx<'_>,
    instances: &[InstanceId],
    now_ms: i64,
    limit: u32,
) -> Result<Vec<Waiting>, StoreError> {
    let mut asked = Vec::with_capacity(instances.len());
    for instance in instances {
        let id = sql(*instance);
        let buckets = Column::i64(Shards::ALL.buckets(id * SHARDS));
        asked.push(tx.query_each_later(
            "select count(*) as due, min(due_at_ms) as first_due_ms from (
                 select due_at_ms from schedule
                 where bucket = {row 1} and instance_id = $3 and due_at_ms <= $1
                 order by due_at_ms limit $2) as due",
            &[&now_ms, &limit, &id],
            &[buckets],
            |row| Ok((row.i64("due")?, row.opt_i64("first_due_ms")?)),
        )?);
    }
    let mut found = Vec::with_capacity(asked.len());
    for rows in asked {
        let mut waiting = Waiting::default();
        for (due, first_due_ms) in tx.rows(rows)? {
            waiting.due += due.cast_unsigned();
            waiting.has_more |= due >= i64::from(limit);
            let times = [waiting.first_due_ms, first_due_ms];
            waiting.first_due_ms = times.into_iter().flatten().min();
        }
        found.push(waiting);
    }
    Ok(found)
}

/// The overdue work of each instance, in the order of the instances. Reads every row of their
/// schedules once, in one statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn overdue(
    tx: &mut Tx<'_>,
    instances: &[InstanceId],
    now_ms: i64,
) -> Result<Vec<Overdue>, StoreError> {
    // One row for stored posts, and one for pending look-ups.
    let claimed = claim_lease::claimed_slots(tx.dialect());
    let query = format!(
        "select instance_id, is_pending, count(*) as posts, cast(sum(late) as {{i64}}) as late,
             cast(sum(leased) as {{i64}}) as leased, min(due_at_ms) as first_due_ms
         from (select instance_id, post_id < 0 as is_pending, due_at_ms, 0 as leased,
                 case when due_at_ms <= $1 then 1 else 0 end as late
             from schedule where {OF_INSTANCES}
             union all
             select instance_id, post_id < 0, due_at_ms, 1,
                 case when due_at_ms <= $1 then 1 else 0 end
             from (select instance_id, lease_bucket as bucket, due_at_ms, post_id
                 from ({claimed}) as slot) as claimed
             where {OF_INSTANCES}) as due
         group by instance_id, is_pending"
    );
    let rows = of_each(tx, &query, now_ms, instances, |row| {
        let state = Overdue {
            scheduled: row.i64("posts")?.cast_unsigned(),
            overdue: row.i64("late")?.cast_unsigned(),
            leased: row.i64("leased")?.cast_unsigned(),
            first_due_ms: row.opt_i64("first_due_ms")?,
            ..Overdue::default()
        };
        Ok((row.i64("instance_id")?, (row.bool("is_pending")?, state)))
    })?;
    let found = rows.into_iter().map(|parts| {
        let mut found = Overdue::default();
        for (is_pending, part) in parts {
            found.leased += part.leased;
            if is_pending {
                found.pending_lookups = part.scheduled;
                found.first_pending_ms = part.first_due_ms;
            } else {
                found.scheduled = part.scheduled;
                found.overdue = part.overdue;
                found.first_due_ms = part.first_due_ms;
            }
        }
        found
    });
    Ok(found.collect())
}

/// The state of the posts of one age band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandState {
    /// The number of posts of that age with a due time.
    pub posts: u64,
    /// The number of those whose due time has passed.
    pub overdue: u64,
    /// The mean time since their last answer, ms.
    pub mean_staleness_ms: i64,
    /// The longest time since a last answer, ms.
    pub max_staleness_ms: i64,
}

/// The states of each instance's scheduled posts, by age band of the table, in the order of the
/// instances. Reads all of them, in one statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn bands(
    tx: &mut Tx<'_>,
    instances: &[InstanceId],
    table: &AgeTable,
    now_ms: i64,
) -> Result<Vec<Vec<BandState>>, StoreError> {
    let cases = table.bands().iter().enumerate();
    let cases = cases
        .map(|(at, band)| format!("when $1 - post_created_at_ms < {} then {at}", band.below_ms));
    let last = table.bands().len().saturating_sub(1);
    let case = format!(
        "case {} else {last} end",
        cases.collect::<Vec<_>>().join(" ")
    );
    let query = format!(
        "select instance_id, band, count(*) as posts, cast(sum(late) as {{i64}}) as overdue,
             cast(avg(stale) as {{i64}}) as mean_ms, max(stale) as max_ms
         from (select instance_id, {case} as band, $1 - refreshed_at_ms as stale,
                 case when due_at_ms <= $1 then 1 else 0 end as late
             from freshness
             where {OF_INSTANCES}
                 and due_at_ms is not null
                 and post_created_at_ms is not null and post_id > 0) as aged
         group by instance_id, band"
    );
    let rows = of_each(tx, &query, now_ms, instances, |row| {
        let state = BandState {
            posts: row.i64("posts")?.cast_unsigned(),
            overdue: row.i64("overdue")?.cast_unsigned(),
            mean_staleness_ms: row.i64("mean_ms")?,
            max_staleness_ms: row.i64("max_ms")?,
        };
        Ok((row.i64("instance_id")?, (row.i64("band")?, state)))
    })?;
    let found = rows.into_iter().map(|states| {
        let mut found = vec![BandState::default(); table.bands().len()];
        for (band, state) in states {
            if let Some(slot) = usize::try_from(band).ok().and_then(|at| found.get_mut(at)) {
                *slot = state;
            }
        }
        found
    });
    Ok(found.collect())
}

/// The condition for the rows of instances, in a table with `bucket` and `instance_id`.
const OF_INSTANCES: &str = "bucket {in $2} and instance_id {of_instances}";

/// Runs a query for instances that contains [`OF_INSTANCES`], and whose first parameter is the
/// time. Returns the rows of each, in the order of the instances.
fn of_each<T>(
    tx: &mut Tx<'_>,
    query: &str,
    now_ms: i64,
    instances: &[InstanceId],
    row: fn(&Row<'_>) -> Result<(i64, T), DbError>,
) -> Result<Vec<Vec<T>>, StoreError> {
    let mut found: HashMap<i64, Vec<T>> = HashMap::new();
    for some in instances.chunks(together(tx)) {
        let ids = || some.iter().map(|instance| sql(*instance));
        let buckets = ids().flat_map(|id| Shards::ALL.buckets(id * SHARDS));
        let (buckets, all) = (Column::i64(buckets), Column::i64(ids()));
        let single = some.first().map(|instance| sql(*instance));
        let (of_instances, instances): (_, &dyn ToValue) = match some {
            [_] => ("= $3", &single),
            _ => ("{in $3}", &all),
        };
        let query = query.replace("{of_instances}", of_instances);
        for (instance, row) in tx.query(&query, &[&now_ms, &buckets, instances], row)? {
            found.entry(instance).or_default().push(row);
        }
    }
    let mut rows_of = |instance: &InstanceId| found.remove(&sql(*instance)).unwrap_or_default();
    Ok(instances.iter().map(&mut rows_of).collect())
}

/// The number of instances per statement. In a distributed database a statement reads one node.
fn together(tx: &Tx<'_>) -> usize {
    match tx.is_distributed() {
        true => 1,
        false => usize::MAX,
    }
}
