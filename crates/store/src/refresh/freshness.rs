//! The table `freshness`: the state of each post's refreshes.

use driftline_core::refresh::{Freshness, LookupOutcome, Policy};
use driftline_db::{Column, DbError, Tx};

use super::{
    refresh_state::{COLUMNS, RefreshState, time_of},
    schedule::{self, Slot},
    stored,
};
use crate::new_ids::TakenIds;

/// Stores new rows, whose IDs may be from `ids`, and schedules them.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    instance_id: i64,
    rows: &[RefreshState],
    ids: &TakenIds,
) -> Result<(), DbError> {
    let sql = format!("insert into freshness ({COLUMNS}, instance_id) {{rows}}");
    let mut columns = columns(rows).to_vec();
    columns[0] = ids.column(rows.iter().map(|state| state.post_id));
    columns.push(Column::i64(rows.iter().map(|_| instance_id)));
    tx.execute_many_later(&sql, &[], &columns)?;
    let due: Vec<Slot> = rows.iter().filter_map(RefreshState::slot).collect();
    schedule::insert_new(tx, &due, ids)
}

/// Schedules posts that were deleted and have returned.
pub(crate) fn revive(
    tx: &mut Tx<'_>,
    instance_id: i64,
    policy: &Policy,
    asked_at_ms: i64,
    post_ids: &[i64],
) -> Result<(), DbError> {
    if post_ids.is_empty() {
        return Ok(());
    }
    let mut slots = Vec::new();
    for state in stored::by_ids(tx, instance_id, post_ids)?.into_values() {
        let freshness = Freshness {
            refreshed_ms: asked_at_ms.max(state.freshness.refreshed_ms),
            missing: false,
            ..state.freshness
        };
        if state.due_at_ms.is_none() {
            let due_at_ms = time_of(policy.due(&freshness.refresh_history()));
            slots.extend(RefreshState { due_at_ms, ..state }.slot());
        }
    }
    tx.execute_many_later(
        "update freshness set due_at_ms = r.due_at_ms, missing = false
         from {rows as r(post_id, due_at_ms)}
         where freshness.post_id = r.post_id and freshness.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(slots.iter().map(|slot| slot.post_id)),
            Column::i64(slots.iter().map(|slot| slot.due_at_ms)),
        ],
    )?;
    schedule::insert(tx, &slots)
}

/// Removes posts from the schedule; their states stay. Returns the number of those that were on it,
/// and of those in the claims of others, which stay unchanged.
pub(crate) fn retire(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<(u64, u64), DbError> {
    if post_ids.is_empty() {
        return Ok((0, 0));
    }
    // A locked due time protects the post, so its state is read afterwards.
    let free = schedule::lock_free_later(tx, instance_id, post_ids.iter().copied())?;
    let free = tx.rows(free)?;
    let states = stored::by_ids(tx, instance_id, post_ids)?;
    let due = states.values().filter(|state| state.due_at_ms.is_some());
    let in_claims = due.count().saturating_sub(free.len());
    schedule::remove_later(tx, &free)?;
    let retired = free.iter().filter_map(|slot| {
        let state = states.get(&slot.post_id)?;
        Some(RefreshState {
            due_at_ms: None,
            ..*state
        })
    });
    let retired: Vec<RefreshState> = retired.collect();
    update(tx, instance_id, &retired)?;
    Ok((retired.len() as u64, in_claims as u64))
}

/// Removes the freshness of posts, and their due times.
pub(crate) fn unschedule(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<(), DbError> {
    if post_ids.is_empty() {
        return Ok(());
    }
    let ids = || Column::i64(post_ids.iter().copied());
    tx.execute(
        "delete from schedule where instance_id = $2 and (bucket, due_at_ms, post_id) in
             (select bucket, due_at_ms, post_id from freshness
              where post_id {in $1} and instance_id = $2)",
        &[&ids(), &instance_id],
    )?;
    tx.execute(
        "delete from freshness where post_id {in $1} and instance_id = $2",
        &[&ids(), &instance_id],
    )?;
    Ok(())
}

/// Writes changes of rows that this transaction has read.
pub(crate) fn update(
    tx: &mut Tx<'_>,
    instance_id: i64,
    changes: &[RefreshState],
) -> Result<(), DbError> {
    let moving: Vec<&str> = COLUMNS.split(',').map(str::trim).skip(FIXED).collect();
    let set: Vec<String> = moving
        .iter()
        .map(|name| format!("{name} = r.{name}"))
        .collect();
    let sql = format!(
        "update freshness set {} from {{rows as r(post_id, {})}}
         where freshness.post_id = r.post_id and freshness.instance_id = $1",
        set.join(", "),
        moving.join(", ")
    );
    let mut columns = columns(changes).to_vec();
    columns.drain(1..FIXED);
    tx.execute_many_later(&sql, &[&instance_id], &columns)
}

/// The number of columns at their beginning that a look-up never changes.
const FIXED: usize = 4;

fn columns(states: &[RefreshState]) -> [Column<'static>; 20] {
    let states = || states.iter();
    let freshness = || states().map(|state| &state.freshness);
    let counts = || freshness().map(|f| f.counts);
    [
        Column::i64(states().map(|state| state.post_id)),
        Column::i64(states().map(|state| state.bucket)),
        Column::i64(freshness().map(|f| f.created_at_ms)),
        Column::i64(freshness().map(|f| f.first_ms)),
        Column::i64(freshness().map(|f| f.refreshed_ms)),
        Column::i64(states().map(|state| state.due_at_ms)),
        Column::i64(freshness().map(|f| i64::from(f.refreshes))),
        Column::i64(freshness().map(|f| i64::from(f.failures))),
        Column::bool(freshness().map(|f| f.missing)),
        Column::text(states().map(|state| state.outcome.map(LookupOutcome::name))),
        Column::i64(states().map(|state| state.state_hash)),
        Column::i64(counts().map(|c| c.replies)),
        Column::i64(counts().map(|c| c.boosts)),
        Column::i64(counts().map(|c| c.favourites)),
        Column::i64(counts().map(|c| c.quotes)),
        Column::i64(counts().map(|c| c.views)),
        Column::i64(freshness().map(|f| f.before.map(|before| before.at_ms))),
        Column::i64(freshness().map(|f| f.before.map_or(0, |before| before.total))),
        Column::i64(freshness().map(|f| f.notified.at_ms)),
        Column::i64(freshness().map(|f| f.notified.total)),
    ]
}
