//! The local clock: the only row that gives local IDs.
//!
//! A transaction that takes IDs updates the row and so locks it until its commit. The order of
//! commits is then the order of IDs, even if the clocks of the processes differ. IDs of the present
//! are taken last, and written at once: see `new_ids.rs`. A push of a device, which takes many IDs
//! one after the other, reserves them: they are in order within each account.
//!
//! No local ID is given twice. The row never falls, each ID is above all earlier ones, and the row
//! is stored in the same commit that uses the ID. After a restart, a step of the clock, or in a
//! second process, IDs continue after the last commit. IDs of history are given while the row is
//! locked: IDs that were ever taken are skipped, and the row is raised to them.
//!
//! Sources are numbered from 1. In the Mastodon API they are lists, next to people's own lists,
//! which have local IDs. The two never collide: every local ID is at least [`MIN_LOCAL_ID`], and no
//! source gets an ID that reaches it.

use driftline_db::{DbError, Root, Tx};
use driftline_id::Layout;

use crate::error::StoreError;

/// The root of writes that belong to no source, such as adding one.
pub const fn root() -> Root {
    Root::row("local_clock", "one", 1)
}

/// Takes `count` IDs for later calls of [`take`], which do not lock the clock then. They are taken in a transaction of its own
/// where that is possible: a write that takes IDs again and again would else hold up all others to its end.
///
/// The commits of the IDs are then in order only among writes below the same root, which must be locked, and only before this
/// transaction locks the clock. So it is for objects of accounts, and not for entries of sources.
pub(crate) fn reserve(tx: &mut Tx<'_>, now_ms: i64, count: usize) -> Result<(), DbError> {
    if tx.may_run_apart() {
        let first = tx.apart(|tx| take(tx, now_ms, count))?;
        tx.reserve(first..first + count as i64);
    }
    Ok(())
}

/// Locks the clock and takes `count` consecutive IDs above every earlier ID. Returns the first.
/// With a count of 0 it only locks the clock. [Reserved](reserve) IDs are taken first, without a lock.
pub(crate) fn take(tx: &mut Tx<'_>, now_ms: i64, count: usize) -> Result<i64, DbError> {
    let count = count as i64;
    if count > 0
        && let Some(first) = tx.take_reserved(count)
    {
        return Ok(first);
    }
    let (take, last) = (take_sql(tx), last(tx));
    let last = tx.query_one(
        &format!("{take} returning {last} as last"),
        &[&first(now_ms), &count],
        |row| row.i64("last"),
    )?;
    Ok(last - count + 1)
}

/// Consecutive IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

/// [`take`] without waiting for the answer: later statements read the last ID.
pub(crate) fn take_later(tx: &mut Tx<'_>, now_ms: i64, count: usize) -> Result<(), DbError> {
    let take = take_sql(tx);
    tx.execute_later(&take, &[&first(now_ms), &(count as i64)])
}

/// The last given ID.
pub(crate) fn last_given(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    let last = last(tx);
    let given = format!("select {last} as last_id from local_clock where one = 1");
    tx.query_one(&given, &[], |row| row.i64("last_id"))
}

/// Makes later IDs begin above `id`. The clock must be locked.
pub(crate) fn raise(tx: &mut Tx<'_>, id: i64) -> Result<(), DbError> {
    let last = last(tx);
    let raise = format!("update local_clock set {last} = {{greatest}}({last}, $1) where one = 1");
    tx.execute_later(&raise, &[&id])
}

/// Takes the ID of a new source. Locks the clock.
///
/// # Errors
/// [`StoreError::NoSourceIds`] if the ID would reach [`MIN_LOCAL_ID`].
pub(crate) fn take_source_id(tx: &mut Tx<'_>) -> Result<i64, StoreError> {
    match take_numbers(tx, "last_source_id", 1)? {
        MIN_LOCAL_ID.. => Err(StoreError::NoSourceIds),
        id => Ok(id),
    }
}

/// Takes `count` consecutive small IDs, counted from 1 in the clock's column `last`. Returns the
/// first. Locks the clock.
pub(crate) fn take_numbers(
    tx: &mut Tx<'_>,
    last: &'static str,
    count: usize,
) -> Result<i64, DbError> {
    let count = count as i64;
    let sql = format!("update local_clock set {last} = {last} + $1 where one = 1 returning {last}");
    let last = tx.query_one(&sql, &[&count], |row| row.i64(last))?;
    Ok(last - count + 1)
}

fn take_sql(tx: &Tx<'_>) -> String {
    let last = last(tx);
    format!("update local_clock set {last} = {{greatest}}($1, {last} + 1) + $2 - 1 where one = 1")
}

/// The column of the last ID. In a distributed store it has another name, so that a process that
/// opened the store before cannot take an ID without a reservation.
pub(crate) fn last(tx: &Tx<'_>) -> &'static str {
    match tx.is_distributed() {
        true => LAST_RESERVED,
        false => LAST,
    }
}

/// The name on one server.
pub(crate) const LAST: &str = "last_id";
/// The name if IDs are reserved.
pub(crate) const LAST_RESERVED: &str = "last_reserved_id";

/// The smallest ID of a post or an entry. The layout reaches it in its second second, and IDs of
/// history are far above it.
pub const MIN_LOCAL_ID: i64 = 1 << 32;

/// The first ID to give at a time, if no ID was given before. A clock that is not set yet may be
/// before the layout's epoch.
fn first(now_ms: i64) -> i64 {
    floor(now_ms).max(MIN_LOCAL_ID)
}

/// The smallest local ID of a time.
pub(crate) fn floor(unix_ms: i64) -> i64 {
    i64::try_from(Layout::PULSATE.smallest_at(unix_ms)).unwrap_or(i64::MAX >> 1)
}
