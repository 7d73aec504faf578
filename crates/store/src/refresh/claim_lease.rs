//! Claim leases: rows with the claims of the processes that share a store. On PostgreSQL only.

use driftline_db::{DbError, Dialect, ToValue, Tx};

use super::{
    instance_of,
    schedule::{self, Slot},
};
use crate::database_clock::{modification_now_sql, now_sql};
use driftline_core::clock::MAX_SKEW_MS;

/// The lock of a claim on an instance, against other claims, until its transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimLock {
    /// Others may claim, too: each skips the rows that another one has locked.
    Shared,
    /// No other claim runs, so that no post is locked by one.
    Exclusive,
}

/// Begins a claim of an instance: waits until its lock is free.
pub(crate) fn enter(tx: &mut Tx<'_>, bucket: i64, lock: ClaimLock) -> Result<(), DbError> {
    let function = match lock {
        ClaimLock::Shared => "pg_advisory_xact_lock_shared",
        ClaimLock::Exclusive => "pg_advisory_xact_lock",
    };
    let key = CLAIM_LOCK.wrapping_add(bucket);
    tx.query_one(
        &format!("select 1 from {function}($1)"),
        &[&key],
        |_| Ok(()),
    )
}

/// Moves slots from the schedule to a lease. Returns its ID, which is its fencing token, and its
/// end. `now_ms` is a recent time by the database's clock, which also determines the end.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    bucket: i64,
    holder: &str,
    (now_ms, lease_ms): (i64, i64),
    slots: &[Slot],
) -> Result<(i64, i64), DbError> {
    schedule::remove_later(tx, slots)?;
    // The time makes later tokens larger, and random bits distinguish tokens of one ms.
    let id = now_ms * IDS_A_MS + random();
    let until_ms = now_ms.saturating_add(lease_ms);
    tx.execute_many_later(
        "insert into claim_lease
             (bucket, id, holder, until_ms, instance_id, buckets, due_times_ms, post_ids)
         select $1, $2, $3, $4, $5, array_agg(bucket), array_agg(due_at_ms), array_agg(post_id)
         from {rows as r(bucket, due_at_ms, post_id, instance_id)}",
        &[&bucket, &id, &holder, &until_ms, &instance_of(bucket)],
        &schedule::columns(slots),
    )?;
    Ok((id, until_ms))
}

/// A query for the claimed slots: `lease_bucket` of their lease, `instance_id`, `due_at_ms` and
/// `post_id`.
pub fn claimed_slots(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "select 0 as lease_bucket, 0 as instance_id, 0 as due_at_ms, 0 as post_id where 1 = 0"
        }
        Dialect::Postgres => {
            "select bucket as lease_bucket, instance_id, slot.* from claim_lease,
                 unnest(due_times_ms, post_ids) as slot(due_at_ms, post_id)"
        }
    }
}

/// Ends a lease, only for its holder and before its time is over. Returns `false` if it is lost.
/// Its posts then belong to the caller.
pub(crate) fn end(tx: &mut Tx<'_>, bucket: i64, id: i64) -> Result<bool, DbError> {
    let now = modification_now_sql(tx);
    let ended = tx.execute(
        &format!(
            "delete from claim_lease
             where bucket = $1 and id = $2 and instance_id = $3 and until_ms > {now}"
        ),
        &[&bucket, &id, &instance_of(bucket)],
    )?;
    Ok(ended > 0)
}

/// Returns the posts of ended leases to the schedule, and their number.
pub(crate) fn put_back_ended(tx: &mut Tx<'_>, bucket: i64) -> Result<u64, DbError> {
    let now = modification_now_sql(tx);
    let ended = format!(
        "id in (select id from claim_lease
             where bucket = $1 and instance_id = $2 and {} <= {now} {{skip_locked}})",
        end_sql(now)
    );
    put_back(tx, &ended, &[&bucket, &instance_of(bucket)])
}

/// Returns the posts of all leases of a holder to the schedule, and their number.
pub(crate) fn put_back_of(tx: &mut Tx<'_>, bucket: i64, holder: &str) -> Result<u64, DbError> {
    put_back(tx, "holder = $3", &[&bucket, &instance_of(bucket), &holder])
}

/// Returns the posts of leases of the bucket `$1` of the instance `$2` to the schedule, and their
/// number.
fn put_back(tx: &mut Tx<'_>, which: &str, params: &[&dyn ToValue]) -> Result<u64, DbError> {
    tx.execute(
        &format!(
            "with ended as (delete from claim_lease
                 where bucket = $1 and instance_id = $2 and {which}
                 returning buckets, due_times_ms, post_ids)
             insert into schedule (bucket, due_at_ms, post_id, instance_id)
             select slot.*, $2 from ended, unnest(buckets, due_times_ms, post_ids) as slot"
        ),
        params,
    )
}

/// The time until the first lease of the bucket ends, in ms; 0 if it has ended.
pub(crate) fn first_end_ms(tx: &mut Tx<'_>, bucket: i64) -> Result<Option<i64>, DbError> {
    let now = now_sql(tx.dialect());
    let left_ms = tx.query_opt(
        &format!(
            "select min({}) - {now} as left_ms from claim_lease
             where bucket = $1 and instance_id = $2",
            end_sql(now)
        ),
        &[&bucket, &instance_of(bucket)],
        |row| row.opt_i64("left_ms"),
    )?;
    Ok(left_ms.flatten().map(|left_ms| left_ms.max(0)))
}

/// The end of a lease, by the database's present clock. It has ended if it was taken before that
/// clock was set back.
pub(super) fn end_sql(now: &str) -> String {
    format!("case when id > ({now} + {MAX_SKEW_MS}) * {IDS_A_MS} then 0 else until_ms end")
}

fn random() -> i64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & 0xf_ffff) as i64
}

/// IDs begin with the time.
const IDS_A_MS: i64 = 1_048_576;
/// Distinguishes this program's claim locks from its lock for migrations and from other programs'
/// locks.
const CLAIM_LOCK: i64 = 1_147_365_959 << 32;
