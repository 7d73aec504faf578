//! The table `freshness`: the state of each post's refreshes.

use std::collections::HashMap;

use driftline_core::{
    post::Counts,
    refresh::{CountSample, Decision, Due, Freshness, LookupOutcome, Policy},
};
use driftline_db::{Column, DbError, Row, Tx};

use super::{
    schedule::{self, Slot},
    stored,
};
use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    new_ids::TakenIds,
    posts::find,
};

/// The state of a post in the refresh pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshState {
    /// What its answers have shown.
    pub freshness: Freshness,
    /// When it is due, Unix ms; `None` if it no longer is.
    pub due_at_ms: Option<i64>,
    /// What its last look-up led to.
    pub outcome: Option<LookupOutcome>,
    pub(crate) post_id: i64,
    pub(crate) bucket: i64,
    pub(crate) state_hash: Option<i64>,
}

impl RefreshState {
    /// That of a post that is new, or of a look-up.
    pub(crate) fn first(
        (bucket, post_id): (i64, i64),
        freshness: Freshness,
        due: Due,
        state_hash: Option<i64>,
    ) -> RefreshState {
        RefreshState {
            freshness,
            due_at_ms: time_of(due),
            outcome: None,
            post_id,
            bucket,
            state_hash,
        }
    }

    /// Its place in the schedule, if it is due some time.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Some(Slot {
            bucket: self.bucket,
            due_at_ms: self.due_at_ms?,
            post_id: self.post_id,
        })
    }

    /// A decision on an answer. Where the post's counts were never known, the first ones are no
    /// growth, and libraries are not notified of them.
    pub(crate) fn without_first_growth(&self, mut decision: Decision, now_ms: i64) -> Decision {
        if self.state_hash.is_none() {
            decision.notify = false;
            decision.freshness.notified = CountSample {
                at_ms: now_ms,
                total: decision.freshness.counts.total(),
            };
        }
        decision
    }
}

/// When a post is due, Unix ms; `None` if it no longer is.
pub(crate) fn time_of(due: Due) -> Option<i64> {
    match due {
        Due::At(due_at_ms) => Some(due_at_ms),
        Due::Retired | Due::Never => None,
    }
}

/// The state of a post; `None` if it is not stored or was never scheduled.
pub fn refresh_state(tx: &mut Tx<'_>, post: LocalId) -> Result<Option<RefreshState>, StoreError> {
    let Some(instance) = find::instance_of(tx, post)? else {
        return Ok(None);
    };
    Ok(by_ids(tx, sql(instance), &[sql(post)])?.remove(&sql(post)))
}

/// The states of an instance's posts and pending look-ups.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<HashMap<i64, RefreshState>, DbError> {
    let found = stored::by_ids(tx, instance_id, post_ids)?.into_iter();
    Ok(found.map(|(id, (state, _))| (id, state)).collect())
}

/// Stores rows that are new, whose IDs may be of `ids`, and schedules them.
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
    for state in by_ids(tx, instance_id, post_ids)?.into_values() {
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

/// Takes posts off the schedule, whose states stay. Returns how many were on it, and how many are in the
/// claims of others, which stay as they are.
pub(crate) fn retire(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<(u64, u64), DbError> {
    if post_ids.is_empty() {
        return Ok((0, 0));
    }
    // A due time that is locked holds the post: its state is read after it.
    let free = schedule::lock_free_later(tx, instance_id, post_ids.iter().copied())?;
    let free = tx.rows(free)?;
    let states = by_ids(tx, instance_id, post_ids)?;
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

/// Forgets the freshness of posts and takes them off the schedule.
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

/// All columns, in the order of [`columns`].
pub(crate) const COLUMNS: &str = "post_id, bucket, post_created_at_ms, first_at_ms,
    refreshed_at_ms, due_at_ms, refreshes, failures, missing, outcome, state_hash, replies, boosts,
    favourites, quotes, views, before_at_ms, before_total, notified_at_ms, notified_total";
/// How many of them, at their beginning, a look-up never changes.
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

/// The counts in a row of posts' freshness or history.
pub(crate) fn counts_of(row: &Row<'_>) -> Result<Counts, DbError> {
    Ok(Counts {
        replies: row.opt_i64("replies")?,
        boosts: row.opt_i64("boosts")?,
        favourites: row.opt_i64("favourites")?,
        quotes: row.opt_i64("quotes")?,
        views: row.opt_i64("views")?,
    })
}

/// Reads the [`COLUMNS`]: all but the source, which is the post's.
pub(crate) fn from_row(row: &Row<'_>) -> Result<RefreshState, DbError> {
    let small = |column| {
        row.i64(column)
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let before_total = row.i64("before_total")?;
    let freshness = Freshness {
        created_at_ms: row.opt_i64("post_created_at_ms")?,
        first_ms: row.i64("first_at_ms")?,
        refreshed_ms: row.i64("refreshed_at_ms")?,
        refreshes: small("refreshes")?,
        failures: small("failures")?,
        missing: row.bool("missing")?,
        counts: counts_of(row)?,
        before: row.opt_i64("before_at_ms")?.map(|at_ms| CountSample {
            at_ms,
            total: before_total,
        }),
        notified: CountSample {
            at_ms: row.i64("notified_at_ms")?,
            total: row.i64("notified_total")?,
        },
        source: None,
    };
    Ok(RefreshState {
        freshness,
        post_id: row.i64("post_id")?,
        due_at_ms: row.opt_i64("due_at_ms")?,
        outcome: row.opt_str("outcome")?.and_then(|name| name.parse().ok()),
        bucket: row.i64("bucket")?,
        state_hash: row.opt_i64("state_hash")?,
    })
}
