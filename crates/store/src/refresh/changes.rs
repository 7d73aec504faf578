//! The changes of posts' refreshes by answers, collected before any is written.

use driftline_core::refresh::{Decision, Freshness};
use driftline_db::{DbError, Tx};

use super::{
    count_history::{self, CountsAt},
    freshness, outbox,
    refresh_state::{self, RefreshState},
    schedule::{self, Slot},
    stored,
};
use crate::posts::{post::PostVersion, post_text};

/// The changes of one save or one page.
#[derive(Default)]
pub(crate) struct RefreshChanges<'a> {
    fresh: Vec<RefreshState>,
    /// The due times to add to the schedule.
    pub(crate) slots: Vec<Slot>,
    counts: Vec<(i64, CountsAt)>,
    /// Versions that differ from the stored ones only in counts.
    pub(crate) recounted: Vec<PostVersion<'a>>,
    /// Posts about which libraries must be notified, each with true if its counts changed.
    pub(crate) outbox: Vec<(i64, bool)>,
}

impl RefreshChanges<'_> {
    /// Schedules the post of a slot by the decision on its answer. A superseded answer has no
    /// `state_hash`.
    pub(crate) fn decide(
        &mut self,
        slot: Slot,
        known: &RefreshState,
        decision: &Decision,
        state_hash: Option<i64>,
    ) {
        let decided = RefreshState {
            freshness: decision.freshness,
            outcome: Some(decision.outcome),
            state_hash: state_hash.or(known.state_hash),
            ..*known
        };
        self.schedule(slot, &decided, refresh_state::time_of(decision.due));
    }

    /// Schedules the post of a slot again, or removes its due time.
    pub(crate) fn schedule(&mut self, slot: Slot, state: &RefreshState, due_at_ms: Option<i64>) {
        self.slots
            .extend(due_at_ms.map(|due_at_ms| Slot { due_at_ms, ..slot }));
        self.fresh.push(RefreshState {
            due_at_ms,
            ..*state
        });
    }

    /// Stores the counts that a post has had.
    pub(crate) fn count(&mut self, post_id: i64, before: &Freshness, after: &Freshness) {
        let rows = count_history::between(before, after);
        self.counts
            .extend(rows.into_iter().map(|row| (post_id, row)));
    }

    pub(crate) fn write(
        &self,
        tx: &mut Tx<'_>,
        instance_id: i64,
        now_ms: i64,
    ) -> Result<(), DbError> {
        stored::recount(tx, instance_id, &self.recounted, now_ms)?;
        post_text::add_labels(tx, instance_id, &self.recounted)?;
        count_history::keep(tx, instance_id, &self.counts)?;
        freshness::update(tx, instance_id, &self.fresh)?;
        schedule::insert(tx, &self.slots)?;
        outbox::add_to_outbox(tx, instance_id, now_ms, &self.outbox)
    }
}
