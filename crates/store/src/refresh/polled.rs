//! What polls show of stored posts in passing: a look at their counts that costs no quota.

use std::{borrow::Cow, collections::HashMap};

use driftline_core::{
    post::Post,
    refresh::{Asked, Due, Policy, Word},
};
use driftline_db::Tx;

use super::{
    claim::Claims,
    count_history,
    fresh::{self, Standing},
    schedule::{self, Slot},
    stored, untold,
};
use crate::{entry::Look, error::StoreError, intake::Sighting, post};

/// A stored post that a page shows again, with the content that is stored and something else.
pub(crate) struct Again<'a> {
    post_id: i64,
    post: &'a Post,
    content_hash: i64,
    living_hash: i64,
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

impl<'a> Again<'a> {
    /// `None` if the page says nothing of the post that its last look has not said, or that look
    /// was a moment ago: whoever polls every second writes nothing every second.
    pub(crate) fn of(sighting: &Sighting<'a>, asked_at_ms: i64) -> Option<Again<'a>> {
        let entry = sighting.entry.as_ref()?;
        let Look {
            at_ms,
            living_hash,
            in_doubt,
        } = entry.look?;
        let is_due = asked_at_ms >= at_ms.saturating_add(PAUSE_MS);
        let differs = is_due && living_hash != Some(sighting.living_hash);
        (differs || in_doubt).then_some(Again {
            post_id: entry.post_id,
            post: sighting.post,
            content_hash: sighting.content_hash,
            living_hash: sighting.living_hash,
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
        again: &[Again<'a>],
    ) -> Result<Looks<'a, 'p>, StoreError> {
        let mut looks = Looks::of(self);
        if again.is_empty() {
            return Ok(looks);
        }
        let ids: Vec<i64> = again.iter().map(|again| again.post_id).collect();
        let standings = fresh::by_ids(tx, &ids)?;
        let held = self.claims.book();
        let due: Vec<Slot> = standings
            .iter()
            .filter(|(post_id, _)| !held.holds(**post_id, self.now_ms))
            .filter_map(|(post_id, standing)| slot(*post_id, standing))
            .collect();
        drop(held);
        // Whoever has the due time has the post: a save that was under way would have moved it.
        let mut free: HashMap<i64, Slot> = schedule::take(tx, &due)?
            .into_iter()
            .map(|slot| (slot.post_id, slot))
            .collect();
        for again in again {
            // A source may list a post more than once.
            if let (Some(slot), Some(standing)) =
                (free.remove(&again.post_id), standings.get(&again.post_id))
            {
                looks.take(again, slot, standing);
            }
        }
        Ok(looks)
    }
}

fn slot(post_id: i64, standing: &Standing) -> Option<Slot> {
    Some(Slot {
        bucket: standing.bucket,
        due_at_ms: standing.due_at_ms?,
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
    untold: Vec<(i64, bool)>,
}

impl<'a, 'p> Looks<'a, 'p> {
    fn of(polled: Polled<'p>) -> Self {
        Looks {
            polled,
            drafts: Vec::new(),
            fresh: Vec::new(),
            slots: Vec::new(),
            counts: Vec::new(),
            untold: Vec::new(),
        }
    }

    fn take(&mut self, again: &Again<'a>, slot: Slot, standing: &Standing) {
        let Polled {
            policy,
            asked_at_ms,
            now_ms,
            ..
        } = self.polled;
        let before = standing.freshness;
        if asked_at_ms < before.refreshed_ms {
            self.slots.push(slot);
            return;
        }
        let asked = Asked {
            at_ms: asked_at_ms,
            now_ms,
            due_ms: slot.due_at_ms,
            chance: 0,
            is_open: true,
        };
        let word = Word::Seen {
            counts: again.post.counts,
            changed: standing.living_hash != Some(again.living_hash),
        };
        let mut seen = standing.settled(before.take(policy, word, asked), now_ms);
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
        self.untold
            .extend(seen.tell.then_some((again.post_id, true)));
        self.fresh.push(fresh::Change {
            post_id: again.post_id,
            bucket: standing.bucket,
            freshness: seen.freshness,
            due_at_ms,
            outcome: Some(seen.outcome),
            living_hash: Some(again.living_hash),
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
        untold::note(tx, instance_id, now_ms, &self.untold)?;
        Ok(self.drafts.len() as u64)
    }
}

/// How long after a look a page's counts are taken in at the soonest, ms.
pub(crate) const PAUSE_MS: i64 = 60_000;
