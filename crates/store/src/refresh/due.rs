//! What is due, for reports.

use driftline_db::Tx;

use super::{SHARDS, lease, schedule};
use crate::{
    error::StoreError,
    ids::{InstanceId, sql},
};

/// How much of an instance is overdue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Posts that have a due time, those in leases included.
    pub scheduled: u64,
    /// Posts whose due time has passed, those in leases included.
    pub overdue: u64,
    /// The earliest due time, Unix ms.
    pub first_due_ms: Option<i64>,
    /// Posts in leases.
    pub leased: u64,
}

/// When the first post of an instance is due that is on the schedule, or comes back onto it when a
/// lease ends: Unix ms by the clock that says `now_ms`.
pub fn next_due_ms(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    let base = sql(instance) * SHARDS;
    let mut first = None;
    for bucket in base..base + SHARDS {
        let due_ms = schedule::next_due_ms(tx, bucket)?;
        first = [first, due_ms].into_iter().flatten().min();
    }
    let left_ms = lease::first_end_ms(tx, base)?;
    let back_ms = left_ms.map(|left_ms| now_ms.saturating_add(left_ms));
    Ok([first, back_ms].into_iter().flatten().min())
}

/// How much of an instance is overdue. Counts every row of its schedule.
pub fn overdue(tx: &mut Tx<'_>, instance: InstanceId, now_ms: i64) -> Result<Overdue, StoreError> {
    let base = sql(instance) * SHARDS;
    let mut found = Overdue::default();
    for bucket in base..base + SHARDS {
        let count = |tx: &mut Tx<'_>, until_ms: i64| {
            tx.query_one(
                "select count(*) from schedule where bucket = $1 and due_at_ms <= $2",
                &[&bucket, &until_ms],
                |row| row.i64(0),
            )
        };
        found.scheduled += count(tx, i64::MAX)?.cast_unsigned();
        found.overdue += count(tx, now_ms)?.cast_unsigned();
        let due_ms = schedule::next_due_ms(tx, bucket)?;
        found.first_due_ms = [found.first_due_ms, due_ms].into_iter().flatten().min();
    }
    for (slot, _) in lease::held(tx, base)? {
        found.leased += 1;
        found.scheduled += 1;
        found.overdue += u64::from(slot.due_at_ms <= now_ms);
        let first_due_ms = found.first_due_ms.unwrap_or(slot.due_at_ms);
        found.first_due_ms = Some(first_due_ms.min(slot.due_at_ms));
    }
    Ok(found)
}
