//! What polls show of stored posts in passing: a look at their counts that costs no quota.

use std::{borrow::Cow, collections::HashMap};

use driftline_core::{
    post::Post,
    refresh::{Due, LookupResult, Policy, RequestContext},
};
use driftline_db::Tx;

use super::{
    claim::Claims,
    count_history,
    fresh::{self, RefreshState},
    outbox,
    schedule::{self, Slot},
    stored,
};
use crate::{entry::Look, error::StoreError, intake::PostObservation, post};

/// A stored post that a page shows again, with the content that is stored and something else.
pub(crate) struct RecountCandidate<'a> {
    post_id: i64,
    post: &'a Post,
    content_hash: i64,
    state_hash: i64,
}

/// When a page shows posts again, and how they are scheduled.
#[derive(Clone, Copy)]
pub(crate) struct Polled<'p> {
    pub(crate) instance_id: i64,
    pub(crate) policy: &'p Policy,
    /// The claims of this process.
    pub(crate) claims: &'p Claims,
    /// When the page was asked for, Unix ms by the local clock.
    pub(crate) asked_at_ms: i64,
    pub(crate) now_ms: i64,
}

impl<'a> RecountCandidate<'a> {
    /// `None` if the page says nothing of the post that its last look has not said, or that look
    /// was a moment ago: whoever polls every second writes nothing every second.
    pub(crate) fn of(
        observation: &PostObservation<'a>,
        asked_at_ms: i64,
    ) -> Option<RecountCandidate<'a>> {
        let entry = observation.entry.as_ref()?;
        let Look {
            at_ms,
            state_hash,
            in_doubt,
        } = entry.look?;
        let is_due = asked_at_ms >= at_ms.saturating_add(PAUSE_MS);
        let differs = is_due && state_hash != Some(observation.state_hash);
        (differs || in_doubt).then_some(RecountCandidate {
            post_id: entry.post_id,
            post: observation.post,
            content_hash: observation.content_hash,
            state_hash: observation.state_hash,
        })
    }
}

impl<'p> Polled<'p> {
    /// Takes posts as if they had been looked up, each whose due time nobody has claimed: what is
    /// claimed is being looked up anyway. Nothing but the due times is written before
    /// [`Looks::write`].
    pub(crate) fn look<'a>(
        self,
        tx: &mut Tx<'_>,
        again: &[RecountCandidate<'a>],
    ) -> Result<Looks<'a, 'p>, StoreError> {
        let mut looks = Looks::of(self);
        if again.is_empty() {
            return Ok(looks);
        }
        let ids: Vec<i64> = again.iter().map(|again| again.post_id).collect();
        let refresh_states = fresh::by_ids(tx, &ids)?;
        let held = self.claims.book();
        let due: Vec<Slot> = refresh_states
            .iter()
            .filter(|(post_id, _)| !held.holds(**post_id, self.now_ms))
            .filter_map(|(post_id, refresh_state)| slot(*post_id, refresh_state))
            .collect();
        drop(held);
        // Whoever has the due time has the post: a save that was under way would have moved it.
        let mut free: HashMap<i64, Slot> = schedule::take(tx, &due)?
            .into_iter()
            .map(|slot| (slot.post_id, slot))
            .collect();
        for again in again {
            // A source may list a post more than once.
            if let (Some(slot), Some(refresh_state)) = (
                free.remove(&again.post_id),
                refresh_states.get(&again.post_id),
            ) {
                looks.take(again, slot, refresh_state);
            }
        }
        Ok(looks)
    }
}

fn slot(post_id: i64, refresh_state: &RefreshState) -> Option<Slot> {
    Some(Slot {
        bucket: refresh_state.bucket,
        due_at_ms: refresh_state.due_at_ms?,
        post_id,
    })
}

/// The changes of one page, gathered before any is written.
pub(crate) struct Looks<'a, 'p> {
    polled: Polled<'p>,
    drafts: Vec<post::Draft<'a>>,
    fresh: Vec<fresh::Change>,
    slots: Vec<Slot>,
    counts: Vec<(i64, count_history::CountsAt)>,
    outbox: Vec<(i64, bool)>,
}

impl<'a, 'p> Looks<'a, 'p> {
    fn of(polled: Polled<'p>) -> Self {
        Looks {
            polled,
            drafts: Vec::new(),
            fresh: Vec::new(),
            slots: Vec::new(),
            counts: Vec::new(),
            outbox: Vec::new(),
        }
    }

    fn take(&mut self, again: &RecountCandidate<'a>, slot: Slot, refresh_state: &RefreshState) {
        let Polled {
            policy,
            asked_at_ms,
            now_ms,
            ..
        } = self.polled;
        let before = refresh_state.freshness;
        if asked_at_ms < before.refreshed_ms {
            self.slots.push(slot);
            return;
        }
        let asked = RequestContext {
            at_ms: asked_at_ms,
            now_ms,
            due_ms: slot.due_at_ms,
            random: 0,
            is_open: true,
        };
        let word = LookupResult::Seen {
            counts: again.post.counts,
            changed: refresh_state.state_hash != Some(again.state_hash),
        };
        let mut seen = refresh_state.settled(before.take(policy, word, asked), now_ms);
        seen.freshness.refreshes = before.refreshes;
        let due_at_ms = match seen.due {
            Due::At(due_at_ms) => Some(due_at_ms),
            Due::Retired | Due::Never => None,
        };
        self.slots
            .extend(due_at_ms.map(|due_at_ms| Slot { due_at_ms, ..slot }));
        self.counts.extend(
            count_history::between(&before, &seen.freshness)
                .into_iter()
                .map(|row| (again.post_id, row)),
        );
        self.outbox
            .extend(seen.notify.then_some((again.post_id, true)));
        self.fresh.push(fresh::Change {
            post_id: again.post_id,
            bucket: refresh_state.bucket,
            freshness: seen.freshness,
            due_at_ms,
            outcome: Some(seen.outcome),
            state_hash: Some(again.state_hash),
        });
        self.drafts.push(post::Draft {
            id: again.post_id,
            upstream_id: Cow::Borrowed(""),
            post: again.post,
            content_hash: again.content_hash,
            listed: false,
        });
    }

    /// Writes them; returns how many posts there are.
    pub(crate) fn write(self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let Polled {
            instance_id,
            asked_at_ms,
            now_ms,
            ..
        } = self.polled;
        let drafts: Vec<_> = self.drafts.iter().collect();
        stored::recount(tx, asked_at_ms, &drafts)?;
        count_history::keep(tx, &self.counts)?;
        fresh::update(tx, &self.fresh)?;
        schedule::insert(tx, &self.slots)?;
        outbox::note(tx, instance_id, now_ms, &self.outbox)?;
        Ok(self.drafts.len() as u64)
    }
}

/// How long after a look a page's counts are taken in at the soonest, ms.
pub(crate) const PAUSE_MS: i64 = 60_000;
