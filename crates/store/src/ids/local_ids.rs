//! The local clock: the one row that local IDs come from.
//!
//! A transaction that takes IDs updates the row and so holds it until its commit. Commit order is
//! then ID order, whatever the clocks of the processes say. Those of now are taken last, and
//! written at once: see `new_ids.rs`.
//!
//! No local ID is given twice: the row never falls, each ID that the clock gives is above all it
//! gave before, and the row is recorded in the same commit that uses the ID. So a restart, a clock
//! that steps back and a second process all go on where the last commit left it. IDs of history
//! are given while the row is held: IDs that were ever taken are skipped, and the row is raised to
//! them.
//!
//! Sources count from 1 and are lists in the Mastodon API, where lists that people make have local
//! IDs. The two never meet: every local ID is at least [`MIN_LOCAL_ID`], and no source gets an ID
//! that reaches it.

use driftline_db::{DbError, Root, Tx};
use driftline_id::Layout;

use crate::error::StoreError;

/// The root of writes that belong to no source, such as adding one.
pub const fn root() -> Root {
    Root::row("local_clock", "one", 1)
}

/// Holds the clock and takes `count` IDs that follow each other, above every ID given before;
/// returns the first. With a count of 0 it only holds the clock.
pub(crate) fn take(tx: &mut Tx<'_>, now_ms: i64, count: usize) -> Result<i64, DbError> {
    let count = count as i64;
    let (take, last) = (take_sql(tx), last(tx));
    let last = tx.query_one(
        &format!("{take} returning {last} as last"),
        &[&first(now_ms), &count],
        |row| row.i64("last"),
    )?;
    Ok(last - count + 1)
}

/// IDs that follow each other.
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

/// The last ID that was given.
pub(crate) fn last_given(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    let last = last(tx);
    let given = format!("select {last} as last_id from local_clock where one = 1");
    tx.query_one(&given, &[], |row| row.i64("last_id"))
}

/// Lets later IDs begin above `id`. The clock must be held.
pub(crate) fn raise(tx: &mut Tx<'_>, id: i64) -> Result<(), DbError> {
    let last = last(tx);
    let raise = format!("update local_clock set {last} = {{greatest}}({last}, $1) where one = 1");
    tx.execute_later(&raise, &[&id])
}

/// Takes the ID of a new source. Holds the clock.
///
/// # Errors
/// [`StoreError::NoSourceIds`] if it would reach [`MIN_LOCAL_ID`].
pub(crate) fn take_source_id(tx: &mut Tx<'_>) -> Result<i64, StoreError> {
    match take_numbers(tx, "last_source_id", 1)? {
        MIN_LOCAL_ID.. => Err(StoreError::NoSourceIds),
        id => Ok(id),
    }
}

/// Takes `count` small IDs that follow each other and count from 1, of those that the clock's column
/// `last` counts; returns the first. Holds the clock.
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

/// The column of the last ID. A distributed store has it under another name, so that no process that
/// opened the store before can take an ID without a reservation.
pub(crate) fn last(tx: &Tx<'_>) -> &'static str {
    match tx.is_distributed() {
        true => LAST_RESERVED,
        false => LAST,
    }
}

/// The name on one server.
pub(crate) const LAST: &str = "last_id";
/// The name where IDs are reserved.
pub(crate) const LAST_RESERVED: &str = "last_reserved_id";

/// The smallest ID that a post or an entry may have: the layout reaches it in its second second,
/// and history is placed far above it.
pub const MIN_LOCAL_ID: i64 = 1 << 32;

/// The first ID to give at a time, where nothing was given before: a clock that is not set yet may
/// be before the layout's epoch.
fn first(now_ms: i64) -> i64 {
    floor(now_ms).max(MIN_LOCAL_ID)
}

/// The smallest local ID of a time.
pub(crate) fn floor(unix_ms: i64) -> i64 {
    i64::try_from(Layout::PULSATE.smallest_at(unix_ms)).unwrap_or(i64::MAX >> 1)
}
