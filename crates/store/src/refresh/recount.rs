//! Recounts: polls show stored posts again, and so refresh their counts without a cost of quota.

use std::collections::HashMap;

use driftline_core::{
    clock::is_older,
    post::{Post, References, Visibility},
    refresh::{LookupResult, Policy, RequestContext},
};
use driftline_db::{DbError, PendingRows, Row, Tx};

use super::{
    changes::RefreshChanges,
    claim::Claims,
    refresh_state::RefreshState,
    schedule::{self, Slot},
    stored::{self, PendingStates, States},
};
use crate::{
    error::StoreError,
    posts::{
        content_scope::ContentScope,
        post::PostVersion,
        reference::{self, LocalIds, PendingLocalIds},
    },
};

/// The result of the last look-up of a post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The time of the request, in Unix ms.
    pub(crate) at_ms: i64,
    pub(crate) state_hash: Option<i64>,
    /// True if look-ups since then did not find the post.
    pub(crate) in_doubt: bool,
}

/// The context of recounts of a page's posts.
#[derive(Clone, Copy)]
pub(crate) struct RecountContext<'p> {
    pub(crate) instance_id: i64,
    /// The scope of the page.
    pub(crate) scope: ContentScope,
    pub(crate) policy: &'p Policy,
    /// The claims of this process.
    pub(crate) claims: &'p Claims,
    /// The time at which the page was requested, in Unix ms by the local clock.
    pub(crate) asked_at_ms: i64,
    pub(crate) now_ms: i64,
}

impl Look {
    /// The columns of `freshness f` that [`Look::from_row`] reads.
    pub(crate) const COLUMNS: &str =
        "f.state_hash, f.refreshed_at_ms, f.missing or f.failures > 0 as in_doubt";

    /// Reads a row; `None` if it has no look-up.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Option<Look>, DbError> {
        let Some(at_ms) = row.opt_i64("refreshed_at_ms")? else {
            return Ok(None);
        };
        Ok(Some(Look {
            at_ms,
            state_hash: row.opt_i64("state_hash")?,
            in_doubt: row.bool("in_doubt")?,
        }))
    }

    /// True if a page requested at that time has new information about the post. False shortly
    /// after a look-up: a poll every second must not cause a write every second.
    pub(crate) fn is_outdated_by(&self, post: &Post, asked_at_ms: i64) -> bool {
        let is_due = asked_at_ms >= self.at_ms.saturating_add(RECOUNT_PAUSE_MS);
        self.in_doubt || is_due && self.state_hash != Some(post.hashes.state)
    }
}

impl<'p> RecountContext<'p> {
    /// Requests stored posts that a page shows with unchanged content, together with the next
    /// query. Claimed posts are skipped, because they are being looked up anyway.
    pub(crate) fn ask<'a>(
        self,
        tx: &mut Tx<'_>,
        candidates: Vec<(i64, &'a Post)>,
    ) -> Result<PendingRecounts<'a, 'p>, StoreError> {
        let held = self.claims.book();
        let candidates: Vec<(i64, &Post)> = candidates
            .into_iter()
            .filter(|(post_id, _)| !held.holds(*post_id, self.now_ms))
            .collect();
        drop(held);
        let ids: Vec<i64> = candidates.iter().map(|(post_id, _)| *post_id).collect();
        let named = named_by(candidates.iter().map(|(_, post)| *post));
        // A locked due time protects the post: a running save has moved it. So the state is read
        // afterwards.
        let free = schedule::lock_free_later(tx, self.instance_id, ids.iter().copied())?;
        let states = match ids.is_empty() {
            true => None,
            false => Some(stored::with_posts_later(tx, self.instance_id, &ids)?),
        };
        Ok(PendingRecounts {
            named: PendingLocalIds::ask(tx, self.instance_id, &named, false)?,
            context: self,
            candidates,
            free,
            states,
        })
    }
}

/// The public references of posts.
fn named_by<'a>(posts: impl Iterator<Item = &'a Post>) -> References {
    reference::together(posts.filter(|post| post.visibility == Visibility::Public))
}

/// Requested posts that may be recounted.
pub(crate) struct PendingRecounts<'a, 'p> {
    context: RecountContext<'p>,
    candidates: Vec<(i64, &'a Post)>,
    free: PendingRows<'static, Slot>,
    states: Option<PendingStates>,
    named: PendingLocalIds,
}

impl<'a, 'p> PendingRecounts<'a, 'p> {
    /// Treats the posts as looked up. Removes their due times. [`Recounts::write`] writes all other
    /// changes.
    pub(crate) fn read(self, tx: &mut Tx<'_>) -> Result<Recounts<'a, 'p>, StoreError> {
        let free = tx.rows(self.free)?;
        schedule::remove_later(tx, &free)?;
        let states = match self.states {
            Some(states) => tx.rows(states)?.into_iter().collect(),
            None => States::default(),
        };
        let mut recounts = Recounts {
            context: self.context,
            changes: RefreshChanges::default(),
            named: self.named.read(tx)?,
        };
        let mut free: HashMap<i64, Slot> =
            free.into_iter().map(|slot| (slot.post_id, slot)).collect();
        for (post_id, post) in &self.candidates {
            // A source may list a post more than once.
            if let Some(slot) = free.remove(post_id)
                && let Some((refresh_state, known)) = states.get(post_id)
            {
                let scope = known.as_ref().map(|known| known.scope);
                recounts.take(post, slot, (refresh_state, scope));
            }
        }
        Ok(recounts)
    }
}

/// The changes of one page, collected before any is written.
pub(crate) struct Recounts<'a, 'p> {
    context: RecountContext<'p>,
    changes: RefreshChanges<'a>,
    /// The local IDs of the posts' references.
    named: LocalIds,
}

impl<'a> Recounts<'a, '_> {
    fn take(
        &mut self,
        post: &'a Post,
        slot: Slot,
        (refresh_state, scope): (&RefreshState, Option<ContentScope>),
    ) {
        let RecountContext {
            policy,
            asked_at_ms,
            now_ms,
            ..
        } = self.context;
        let post_id = slot.post_id;
        let before = refresh_state.freshness;
        if is_older(asked_at_ms, before.refreshed_ms, now_ms) {
            self.changes.slots.push(slot);
            return;
        }
        let version = PostVersion {
            id: post_id,
            post,
            listed: false,
            in_public: false,
            from_history: false,
            read_at_ms: asked_at_ms,
            scope: self.context.scope,
        };
        if scope.is_some_and(|scope| scope != self.context.scope) {
            // The post's own content has another scope, whose answers show its counts.
            self.changes.slots.push(slot);
            self.changes.recounted.push(version);
            return;
        }
        let asked = RequestContext {
            at_ms: asked_at_ms,
            now_ms,
            due_ms: slot.due_at_ms,
            random: 0,
            is_open: true,
        };
        let result = LookupResult::Seen {
            counts: post.counts,
            changed: refresh_state.state_hash != Some(post.hashes.state),
        };
        let mut seen =
            refresh_state.without_first_growth(before.take(policy, result, asked), now_ms);
        seen.freshness.refreshes = before.refreshes;
        self.changes
            .decide(slot, refresh_state, &seen, Some(post.hashes.state));
        self.changes.count(post_id, &before, &seen.freshness);
        self.changes
            .outbox
            .extend(seen.notify.then_some((post_id, true)));
        self.changes.recounted.push(version);
    }

    /// Writes the changes, except for the local IDs of the posts' references.
    pub(crate) fn write(self, tx: &mut Tx<'_>) -> Result<Recounted, StoreError> {
        let RecountContext {
            instance_id,
            now_ms,
            ..
        } = self.context;
        let posts = self.changes.recounted.iter().map(|version| version.post);
        let mut unmapped = named_by(posts);
        reference::hold_unknown(tx, instance_id, &mut unmapped, &self.named)?;
        self.changes.write(tx, instance_id, now_ms)?;
        Ok(Recounted {
            posts: self.changes.recounted.len() as u64,
            unmapped,
        })
    }
}

/// The result of recounts.
pub(crate) struct Recounted {
    /// The number of posts.
    pub(crate) posts: u64,
    /// The references without a local ID. If there are any, the instance is locked. They must be
    /// assigned last, because that may lock the clock.
    pub(crate) unmapped: References,
}

/// The shortest time from a look-up to a recount, ms.
pub(crate) const RECOUNT_PAUSE_MS: i64 = 60_000;
