//! Claim leases: rows of what the processes that share a store have claimed.

use driftline_db::{DbError, Tx};

use super::schedule::{self, Slot};
use crate::database_clock::now_sql;

/// How a claim locks an instance against other claims until its transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimLock {
    /// Others may claim too: each skips what another one has locked.
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

/// Takes slots off the schedule and into a lease; returns its ID, which is its fencing token, and
/// its end. `now_ms` is the time by the database's clock, a moment ago, and the end is by it too.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    bucket: i64,
    holder: &str,
    (now_ms, lease_ms): (i64, i64),
    slots: &[Slot],
) -> Result<(i64, i64), DbError> {
    schedule::remove_later(tx, slots)?;
    // The time makes later tokens larger, random keeps two of one ms apart.
    let id = now_ms * 1_048_576 + random();
    let until_ms = now_ms.saturating_add(lease_ms);
    tx.execute_later(
        "insert into claim_lease (bucket, id, holder, until_ms, posts) values ($1, $2, $3, $4, $5)",
        &[&bucket, &id, &holder, &until_ms, &written(slots)],
    )?;
    Ok((id, until_ms))
}

/// Ends a lease, for its holder only and only before its time is over; `false` if it is lost.
pub(crate) fn end(tx: &mut Tx<'_>, bucket: i64, id: i64) -> Result<bool, DbError> {
    let now = now_sql(tx.dialect());
    let ended = tx.execute(
        &format!("delete from claim_lease where bucket = $1 and id = $2 and until_ms > {now}"),
        &[&bucket, &id],
    )?;
    Ok(ended > 0)
}

/// Puts the posts of ended leases back onto the schedule; returns how many.
pub(crate) fn put_back_ended(tx: &mut Tx<'_>, bucket: i64) -> Result<usize, DbError> {
    let now = now_sql(tx.dialect());
    let ended = tx.query(
        &format!(
            "delete from claim_lease where bucket = $1 and id in
                 (select id from claim_lease where bucket = $1 and until_ms <= {now} {{skip_locked}})
             returning posts"
        ),
        &[&bucket],
        |row| read(row.str(0)?),
    )?;
    let slots: Vec<Slot> = ended.into_iter().flatten().collect();
    schedule::insert(tx, &slots)?;
    Ok(slots.len())
}

/// Puts the posts of all leases of a holder back onto the schedule.
pub(crate) fn put_back_of(tx: &mut Tx<'_>, bucket: i64, holder: &str) -> Result<(), DbError> {
    let held = tx.query(
        "delete from claim_lease where bucket = $1 and holder = $2 returning posts",
        &[&bucket, &holder],
        |row| read(row.str(0)?),
    )?;
    let slots: Vec<Slot> = held.into_iter().flatten().collect();
    schedule::insert(tx, &slots)
}

/// How long until the first lease of the bucket ends, ms; 0 if it has.
pub(crate) fn first_end_ms(tx: &mut Tx<'_>, bucket: i64) -> Result<Option<i64>, DbError> {
    let now = now_sql(tx.dialect());
    let left_ms = tx.query_opt(
        &format!(
            "select until_ms - {now} from claim_lease where bucket = $1 order by until_ms limit 1"
        ),
        &[&bucket],
        |row| row.i64(0),
    )?;
    Ok(left_ms.map(|left_ms| left_ms.max(0)))
}

/// Every post that is in a lease of the bucket, with its lease's end.
pub(crate) fn held(tx: &mut Tx<'_>, bucket: i64) -> Result<Vec<(Slot, i64)>, DbError> {
    let leases = tx.query(
        "select posts, until_ms from claim_lease where bucket = $1",
        &[&bucket],
        |row| Ok((read(row.str(0)?)?, row.i64(1)?)),
    )?;
    let flat = leases
        .into_iter()
        .flat_map(|(slots, until_ms)| slots.into_iter().map(move |slot| (slot, until_ms)));
    Ok(flat.collect())
}

/// `bucket:due:post` of each, separated by spaces.
fn written(slots: &[Slot]) -> String {
    let one = |slot: &Slot| format!("{}:{}:{}", slot.bucket, slot.due_at_ms, slot.post_id);
    slots.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn read(text: &str) -> Result<Vec<Slot>, DbError> {
    let one = |text: &str| {
        let mut numbers = text.split(':').map(|number| number.parse::<i64>().ok());
        Some(Slot {
            bucket: numbers.next()??,
            due_at_ms: numbers.next()??,
            post_id: numbers.next()??,
        })
    };
    text.split_ascii_whitespace()
        .map(|slot| one(slot).ok_or_else(|| DbError::invalid("a lease that cannot be read")))
        .collect()
}

fn random() -> i64 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & 0xf_ffff) as i64
}

/// Keeps this program's claim locks apart from its lock for migrations and from other programs'.
const CLAIM_LOCK: i64 = 1_147_365_959 << 32;
