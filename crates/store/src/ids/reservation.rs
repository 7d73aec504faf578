//! Reservations: IDs that a write on a distributed database has taken and that may not be visible
//! yet.
//!
//! There no snapshot spans the nodes, and the commit of a write may be visible on one node before
//! another. So a write takes its IDs in a transaction of its own on the coordinator
//! ([`Tx::apart`]), which also records that it has them, while it locks its instance. Readers of
//! several instances first read a bound there, and nothing beyond it.
//!
//! A reservation ends when its write is known to have ended. The next transaction that locks the
//! row of the instance knows that, because the write locked it to its end, prepared on a node or
//! not. So no reservation needs a fence, and none of a dead process stays for long:
//! [`end_expired`]. The argument is in `docs/distribution.md`, its model in `tests/order_model`.
//!
//! Only one reservation of history is open at a time. Its IDs are searched among the visible ones,
//! so two concurrent writes could take the same one.

use std::{ops::RangeInclusive, thread, time::Duration};

use driftline_db::{Column, DbError, Root, Tx};

use crate::{
    database_clock::{is_live_sql, now_sql},
    error::StoreError,
    local_ids::{self, Taken},
    open::store::Store,
    posts::instance,
};

/// The IDs that a reader of several instances may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Only IDs below this one.
    pub(crate) below: i64,
}

impl Bound {
    /// On one server all visible rows may be shown.
    pub(crate) const NONE: Bound = Bound { below: i64::MAX };

    /// Reads the bound. It must be read before the rows that it limits, in one transaction.
    pub(crate) fn read(tx: &mut Tx<'_>) -> Result<Bound, DbError> {
        if !tx.is_distributed() {
            return Ok(Bound::NONE);
        }
        let last = local_ids::last(tx);
        tx.query_one(
            &format!(
                "select coalesce((select min(first_id) from reservation), {last} + 1) as below
                 from local_clock where one = 1"
            ),
            &[],
            |row| {
                Ok(Bound {
                    below: row.i64("below")?,
                })
            },
        )
    }
}

/// The IDs of the present that open reservations may have.
pub(crate) fn of_others(tx: &mut Tx<'_>) -> Result<Vec<RangeInclusive<i64>>, DbError> {
    if !tx.is_distributed() {
        return Ok(Vec::new());
    }
    tx.query(
        "select first_id, last_id from reservation where first_id is not null",
        &[],
        |row| Ok(row.i64("first_id")?..=row.i64("last_id")?),
    )
}

/// Takes `count` consecutive IDs of the present, above every earlier ID. Returns the first. Locks
/// the instance.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    instance_id: i64,
    now_ms: i64,
    count: usize,
) -> Result<i64, DbError> {
    let write_id = tx.number();
    let earlier = hold(tx, instance_id)?;
    tx.apart(|tx| {
        end(tx, &earlier)?;
        let first = local_ids::take(tx, now_ms, count)?;
        let taken = Taken {
            first,
            last: first + count as i64 - 1,
        };
        add(tx, (write_id, instance_id), Some(taken), false)?;
        Ok(first)
    })
}

/// Takes IDs of history by `place`, which runs while the clock is locked. The instance must be
/// locked. On a distributed database it waits at most a second until no other write has invisible
/// history.
pub(crate) fn place_history<T>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    now_ms: i64,
    mut place: impl FnMut(&mut Tx<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    if !tx.is_distributed() {
        local_ids::take_later(tx, now_ms, 0)?;
        return place(tx);
    }
    let write_id = tx.number();
    let earlier = hold(tx, instance_id)?;
    for turn in 1..=MAX_TURNS {
        let placed = tx.apart(|tx| {
            local_ids::take_later(tx, now_ms, 0)?;
            end(tx, &earlier)?;
            let others = tx.query_one(
                "select count(*) as others from reservation where is_history and write_id <> $1",
                &[&write_id],
                |row| row.i64("others"),
            )?;
            match others {
                0 => {}
                // The write is run again, and has no locks until then.
                _ if turn == MAX_TURNS => return Err(DbError::Deadlock),
                _ => return Ok(None),
            }
            let placed = place(tx)?;
            add(tx, (write_id, instance_id), None, true)?;
            Ok(Some(placed))
        })?;
        if let Some(placed) = placed {
            return Ok(placed);
        }
        tx.apart(end_expired_of_all)?;
        thread::sleep(TURN);
    }
    Err(DbError::Deadlock)
}

/// Ends reservations whose writes have ended, for example those of dead processes. Returns the
/// number of open ones. A running write keeps its own, even if it takes long.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub async fn end_expired(store: &Store) -> Result<u64, StoreError> {
    if !store.is_distributed() {
        return Ok(0);
    }
    store.write(Root::none(), end_expired_of_all).await?;
    let open = |tx: &mut Tx<'_>| {
        let count = "select count(*) as open from reservation";
        tx.query_one(count, &[], |row| row.i64("open"))
    };
    Ok(store.read(open).await?.unsigned_abs())
}

fn end_expired_of_all(tx: &mut Tx<'_>) -> Result<(), DbError> {
    let is_live = is_live_sql("until_ms", now_sql(tx.dialect()));
    let instances = tx.query(
        &format!("select distinct instance_id from reservation where not {is_live}"),
        &[],
        |row| row.i64("instance_id"),
    )?;
    for instance_id in instances {
        end_unheld(tx, instance_id)?;
    }
    Ok(())
}

/// Locks the instance. Returns the open reservations of its earlier writes. These have ended: each
/// of them had locked the instance when it reserved, and this write has locked it after they were
/// read.
fn hold(tx: &mut Tx<'_>, instance_id: i64) -> Result<Vec<i64>, DbError> {
    let write_id = tx.number();
    let earlier = tx.query_later(
        "select write_id from reservation where instance_id = $1 and write_id <> $2",
        &[&instance_id, &write_id],
        |row| row.i64("write_id"),
    )?;
    instance::hold(tx, instance_id)?;
    tx.at_end(move |tx| {
        for _ in 0..END_TRIES {
            let is_held = end_unheld(tx, instance_id)?;
            if is_held || !is_open(tx, write_id)? {
                break;
            }
            thread::sleep(END_PAUSE);
        }
        Ok(())
    });
    tx.rows(earlier)
}

/// Ends the reservations of an instance, unless a write has locked it. Returns true if no write
/// has. Reservations made before the instance was locked belong to writes that have ended.
fn end_unheld(tx: &mut Tx<'_>, instance_id: i64) -> Result<bool, DbError> {
    let reserved = tx.query(
        "select write_id from reservation where instance_id = $1",
        &[&instance_id],
        |row| row.i64("write_id"),
    )?;
    let held = tx.query_opt(
        "select 1 from instance where id = $1 {skip_locked}",
        &[&instance_id],
        |_| Ok(()),
    )?;
    if held.is_some() {
        end(tx, &reserved)?;
    }
    Ok(held.is_some())
}

fn end(tx: &mut Tx<'_>, write_ids: &[i64]) -> Result<(), DbError> {
    if write_ids.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        "delete from reservation where write_id {in $1}",
        &[&Column::i64(write_ids.iter().copied())],
    )
}

fn is_open(tx: &mut Tx<'_>, write_id: i64) -> Result<bool, DbError> {
    let open = tx.query_opt(
        "select 1 from reservation where write_id = $1",
        &[&write_id],
        |_| Ok(()),
    )?;
    Ok(open.is_some())
}

/// Adds IDs to a write's reservation.
fn add(
    tx: &mut Tx<'_>,
    (write_id, instance_id): (i64, i64),
    of_now: Option<Taken>,
    is_history: bool,
) -> Result<(), DbError> {
    let now = now_sql(tx.dialect());
    tx.execute_later(
        &format!(
            "insert into reservation
                 (write_id, instance_id, first_id, last_id, is_history, until_ms)
             values ($1, $2, $3, $4, $5, {now} + $6)
             on conflict (write_id) do update set
                 first_id = coalesce(reservation.first_id, excluded.first_id),
                 last_id = coalesce(excluded.last_id, reservation.last_id),
                 is_history = reservation.is_history or excluded.is_history"
        ),
        &[
            &write_id,
            &instance_id,
            &of_now.map(|taken| taken.first),
            &of_now.map(|taken| taken.last),
            &is_history,
            &LEASE_MS,
        ],
    )
}

/// Longer than a page's commit takes. A slower write loses nothing.
const LEASE_MS: i64 = 3_000;
/// The number of checks of a write of history for the end of another one: for a second, because it
/// keeps its source and its instance locked. Then it is run again.
const MAX_TURNS: u32 = 200;
const TURN: Duration = Duration::from_millis(5);
/// The number of attempts of a write to end its reservation while others lock the instance. The
/// next of them that takes IDs ends it, too. [`end_expired`] ends the rest.
const END_TRIES: u32 = 20;
const END_PAUSE: Duration = Duration::from_millis(5);
