//! Saves the answers to the look-ups of a claimed batch.

use std::{collections::HashMap, sync::Arc};

use driftline_core::{
    post::{Post, Visibility},
    refresh::{Due, Freshness, LookupOutcome, LookupResult, Policy, RequestContext},
};
use driftline_db::{Column, Root, Tx};

use super::{
    changes::RefreshChanges,
    choice,
    claim::{Claim, Claims},
    due_post::{DuePost, LookupTarget},
    pending_lookup,
    refresh_state::RefreshState,
    schedule::Slot,
    stored::{self, States},
    unrefreshed::PendingUnrefreshed,
};
use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    new_ids::{NewIds, TakenIds},
    open::store::Store,
    posts::{
        history::{self, EndedBy},
        index_pending, instance,
        post::{self, PostVersion},
        post_text::{self, VersionText},
        reference, scoped_content,
    },
};

/// The answers to a claim's look-ups, to save.
#[derive(Clone, Debug)]
pub struct Save {
    /// The claim on the posts. Posts without an answer keep their due times.
    pub claim: Claim,
    /// The answers, at most one per post.
    pub answers: Vec<AnsweredLookup>,
    /// Posts of the claim that no permitted credential can look up now, each with its new due time
    /// in Unix ms.
    pub put_off: Vec<(LookupTarget, i64)>,
    /// The policy for scheduling posts.
    pub policy: Arc<Policy>,
    /// True if a deleted post's content is kept in its history; otherwise it is erased.
    pub keep_deleted: bool,
    /// The present time in Unix ms.
    pub now_ms: i64,
    /// Any random number, which spreads retries.
    pub random: u64,
}

/// The answer to a post's look-up.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredLookup {
    /// The target of the look-up.
    pub what: LookupTarget,
    /// The answer.
    pub answer: LookupAnswer,
    /// The time of the request, in Unix ms.
    pub asked_at_ms: i64,
}

/// An upstream's answer about a post.
#[derive(Clone, Debug, PartialEq)]
pub enum LookupAnswer {
    /// The post exists.
    Found(Box<Post>),
    /// The answer omitted the post.
    Missing,
    /// The post no longer exists.
    Gone,
    /// The post exists, but this client may not see it.
    Hidden,
    /// The answer was not usable, or there was none.
    Nothing,
    /// A request for it and others had no usable answer, and the post at fault is unknown.
    Suspect,
    /// No owner of the post has a credential any more, so it was not requested.
    NoCredential,
    /// Look-ups with the credential find no posts of its kind, so it was not requested.
    Unsupported,
}

impl LookupAnswer {
    /// True if it has information about the post.
    pub fn is_usable(&self) -> bool {
        !matches!(
            self,
            Self::Nothing | Self::Suspect | Self::NoCredential | Self::Unsupported
        )
    }
}

/// The changes of a save.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// The outcome for each post with an answer.
    pub outcomes: Vec<(LookupTarget, LookupOutcome)>,
    /// Posts about which libraries must be notified, each with true if its counts changed: see
    /// [`crate::mirror::notify`].
    pub news: Vec<(LocalId, bool)>,
    /// The number of posts that were rescheduled without a look-up, because the price rose.
    pub postponed: u64,
    /// The freshness before and after, for each post whose counts an answer showed.
    pub grown: Vec<(Freshness, Freshness)>,
}

impl Claims {
    /// Saves answers and schedules the posts again, in one transaction. Ends the claim even if it
    /// fails.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the claim had ended before, [`StoreError::Db`] if the database
    /// fails. Nothing is changed then, and the posts are due again once the claim's time is over.
    pub async fn save(&self, store: &Store, save: Save) -> Result<Saved, StoreError> {
        let (claims, save) = (self.clone(), Arc::new(save));
        let shared = Arc::clone(&save);
        let saved = store
            .write(Root::none(), move |tx| write(tx, &claims, &shared))
            .await;
        self.forget(&save.claim);
        saved
    }
}

fn write(tx: &mut Tx<'_>, claims: &Claims, save: &Save) -> Result<Saved, StoreError> {
    if !claims.redeem(tx, &save.claim, save.now_ms)? {
        return Err(StoreError::LeaseLost);
    }
    let instance_id = sql(save.claim.instance);
    let ids: Vec<i64> = save.claim.slots().map(|slot| slot.post_id).collect();
    let mut known = stored::with_posts(tx, instance_id, &ids)?;
    if may_change_content(save, &known) {
        // Data shared by sources are decided while the instance is locked, so that no poll changes
        // a post's content or existence meanwhile.
        instance::hold(tx, instance_id)?;
        known = stored::with_posts(tx, instance_id, &ids)?;
    }
    let mut changes = Changes::default();
    if !save.claim.unrefreshed.is_empty() {
        // Since the claim, a source may have begun to refresh them.
        let ids: Vec<i64> = save.claim.unrefreshed.iter().map(|of| of.post_id).collect();
        let off = PendingUnrefreshed::ask(tx, instance_id)?.among(tx, &ids)?;
        for slot in &save.claim.unrefreshed {
            match known.get(&slot.post_id) {
                Some((state, _)) if state.due_at_ms != Some(slot.due_at_ms) => {}
                Some((state, _)) if off.contains(&slot.post_id) => {
                    changes.refreshed.schedule(*slot, state, None);
                }
                Some(_) => changes.refreshed.slots.push(*slot),
                None => {}
            }
        }
    }
    for slot in &save.claim.idle {
        match known.get(&slot.post_id) {
            // Another transaction has scheduled it meanwhile.
            Some((refresh_state, _)) if refresh_state.due_at_ms != Some(slot.due_at_ms) => {}
            // It returned while it was claimed.
            Some((_, Some(stored))) if !stored.is_gone() => {
                changes.refreshed.slots.push(*slot);
            }
            Some((refresh_state, _)) => changes.refreshed.schedule(*slot, refresh_state, None),
            None => {}
        }
    }
    for slot in &save.claim.later {
        if let Some((state, Some(stored))) = known.get(&slot.post_id)
            && state.due_at_ms == Some(slot.due_at_ms)
        {
            changes.put_off(save, *slot, state, stored);
        }
    }
    let mut answers: HashMap<LookupTarget, &AnsweredLookup> =
        save.answers.iter().map(|a| (a.what, a)).collect();
    let put_off: HashMap<LookupTarget, i64> = save.put_off.iter().copied().collect();
    for due in &save.claim.posts {
        let Some((refresh_state, stored)) = known.get(&due.slot.post_id) else {
            continue;
        };
        // A claim from a snapshot before another save does not contain the post any more.
        if refresh_state.due_at_ms != Some(due.due_at_ms) {
            continue;
        }
        match (answers.remove(&due.what), due.what, stored) {
            (None, ..) if let Some(due_at_ms) = put_off.get(&due.what) => {
                changes
                    .refreshed
                    .schedule(due.slot, refresh_state, Some(*due_at_ms));
            }
            (None, ..) => changes.refreshed.slots.push(due.slot),
            (Some(answered), LookupTarget::Stored(post), Some(stored)) => {
                changes.take(save, (due, post), (refresh_state, stored), answered);
            }
            (Some(answered), LookupTarget::Pending { .. }, _) => {
                changes.take_pending(save, due, refresh_state, answered);
            }
            (Some(_), LookupTarget::Stored(_), None) => {}
        }
    }
    changes.write(tx, instance_id, save)
}

/// True if the save may change more of a post than its counts.
fn may_change_content(save: &Save, known: &States) -> bool {
    let stored = |id| known.get(&id).and_then(|(_, stored)| stored.as_ref());
    let is_deleted = |id| stored(id).is_some_and(|stored| stored.is_gone());
    let answer_may = |answered: &AnsweredLookup| match (answered.what, &answered.answer) {
        (LookupTarget::Stored(id), LookupAnswer::Found(post)) => {
            stored(sql(id)).is_some_and(|stored| stored.is_gone() || stored.differs_from(post))
        }
        (LookupTarget::Stored(_), LookupAnswer::Missing | LookupAnswer::Gone) => true,
        _ => false,
    };
    !save.claim.idle.is_empty()
        || !save.claim.unrefreshed.is_empty()
        || save.claim.later.iter().any(|slot| is_deleted(slot.post_id))
        || save.answers.iter().any(answer_may)
}

/// The changes of one save, collected before any is written.
#[derive(Default)]
struct Changes<'a> {
    refreshed: RefreshChanges<'a>,
    /// New versions that are edits or returns.
    versions: Vec<PostVersion<'a>>,
    /// The posts among them that had been deleted.
    returned: Vec<i64>,
    /// The posts to delete, each with the time of the request.
    deleted: Vec<(i64, i64)>,
    /// Look-ups that have failed for good.
    given_up: Vec<i64>,
    saved: Saved,
}

impl LookupAnswer {
    /// The result of the answer. `seen` makes it for a found post.
    fn result(&self, seen: impl FnOnce(&Post) -> LookupResult) -> LookupResult {
        match self {
            LookupAnswer::Found(post) => seen(post),
            LookupAnswer::Missing => LookupResult::Missing,
            LookupAnswer::Gone => LookupResult::Gone,
            LookupAnswer::Hidden => LookupResult::Hidden,
            LookupAnswer::Nothing => LookupResult::Nothing,
            LookupAnswer::Suspect => LookupResult::Suspect,
            LookupAnswer::NoCredential => LookupResult::NoCredential,
            LookupAnswer::Unsupported => LookupResult::Unsupported,
        }
    }
}

fn asked(save: &Save, due: &DuePost, answered: &AnsweredLookup) -> RequestContext {
    RequestContext {
        at_ms: answered.asked_at_ms,
        now_ms: save.now_ms,
        due_ms: due.due_at_ms,
        random: save.random ^ due.slot.post_id.cast_unsigned(),
        is_open: due.is_open,
    }
}

impl<'a> Changes<'a> {
    fn take(
        &mut self,
        save: &'a Save,
        (due, local): (&DuePost, LocalId),
        (refresh_state, known): (&RefreshState, &post::KnownPost),
        answered: &'a AnsweredLookup,
    ) {
        let asked = asked(save, due, answered);
        if known.scope != due.scope {
            // The answer has another scope than the post's present content, so the post is looked
            // up again.
            return self.refreshed.slots.push(due.slot);
        }
        // A poll may have stored a newer version, or a tombstone, since the claim.
        let newest_ms = known
            .read_at_ms
            .max(known.deleted_at_ms.unwrap_or(i64::MIN));
        let before = Freshness {
            refreshed_ms: refresh_state.freshness.refreshed_ms.max(newest_ms),
            ..refresh_state.freshness
        };
        let state_hash = match &answered.answer {
            LookupAnswer::Found(post) => Some(post.hashes.state),
            _ => refresh_state.state_hash,
        };
        let result = answered.answer.result(|post| LookupResult::Seen {
            counts: post.counts,
            changed: state_hash != refresh_state.state_hash || known.is_gone(),
        });
        let refreshed = refresh_state
            .without_first_growth(before.take(&save.policy, result, asked), save.now_ms);
        self.saved.outcomes.push((due.what, refreshed.outcome));
        let mut notify = refreshed.notify.then_some(true);
        match (&answered.answer, refreshed.outcome) {
            (LookupAnswer::Found(post), LookupOutcome::Updated) => {
                self.refreshed
                    .count(due.slot.post_id, &before, &refreshed.freshness);
                if self.version(due, post, known, answered.asked_at_ms) {
                    notify = notify.or(Some(false));
                }
            }
            (_, LookupOutcome::Deleted) if !known.is_gone() => {
                self.deleted.push((due.slot.post_id, answered.asked_at_ms));
                notify = Some(false);
            }
            _ => {}
        }
        let is_seen = matches!(
            refreshed.outcome,
            LookupOutcome::Updated | LookupOutcome::Unchanged
        );
        if is_seen && refresh_state.state_hash.is_some() {
            self.saved.grown.push((before, refreshed.freshness));
        }
        if let Some(counts) = notify {
            self.refreshed.outbox.push((due.slot.post_id, counts));
            self.saved.news.push((local, counts));
        }
        let is_stored = refreshed.outcome != LookupOutcome::Superseded;
        let state_hash = state_hash.filter(|_| is_stored);
        self.refreshed
            .decide(due.slot, refresh_state, &refreshed, state_hash);
    }

    /// Handles a pending look-up without a result. Those with one are stored and removed before the
    /// save.
    fn take_pending(
        &mut self,
        save: &Save,
        due: &DuePost,
        refresh_state: &RefreshState,
        answered: &AnsweredLookup,
    ) {
        if let LookupAnswer::Found(_) = answered.answer {
            return self.refreshed.slots.push(due.slot);
        }
        let result = answered.answer.result(|_| LookupResult::Nothing);
        let mut refreshed =
            refresh_state
                .freshness
                .take(&save.policy, result, asked(save, due, answered));
        if refreshed.outcome == LookupOutcome::Hidden {
            refreshed.due = Due::Retired;
        }
        if !matches!(refreshed.due, Due::At(_)) {
            self.given_up.push(due.slot.post_id);
        }
        self.saved.outcomes.push((due.what, refreshed.outcome));
        self.refreshed
            .decide(due.slot, refresh_state, &refreshed, None);
    }

    /// Adds a version. Returns true if libraries must be notified about it.
    fn version(
        &mut self,
        due: &DuePost,
        found: &'a Post,
        known: &post::KnownPost,
        asked_at_ms: i64,
    ) -> bool {
        let returns = known.is_gone();
        let is_edit = known.differs_from(found);
        let version = PostVersion {
            id: due.slot.post_id,
            post: found,
            // Readers have passed its ID, so a post that was not listed there stays unlisted. A
            // post that returns takes a new ID.
            listed: (known.listed || returns && known.in_public)
                && found.visibility == Visibility::Public,
            in_public: known.in_public,
            from_history: false,
            read_at_ms: asked_at_ms,
            scope: known.scope,
        };
        if returns {
            self.returned.push(due.slot.post_id);
        }
        match is_edit || returns {
            true => self.versions.push(version),
            false => self.refreshed.recounted.push(version),
        }
        is_edit || returns
    }

    /// Schedules a post by the present policy.
    fn put_off(
        &mut self,
        save: &Save,
        slot: Slot,
        refresh_state: &RefreshState,
        stored: &post::KnownPost,
    ) {
        if stored.is_gone() {
            return self.refreshed.schedule(slot, refresh_state, None);
        }
        match choice::planned(&save.policy, &refresh_state.freshness) {
            Some(Due::At(due_at_ms)) => {
                self.saved.postponed += 1;
                self.refreshed
                    .schedule(slot, refresh_state, Some(due_at_ms));
            }
            // The next claim handles it.
            Some(Due::Retired | Due::Never) | None => self.refreshed.slots.push(slot),
        }
    }

    fn write(self, tx: &mut Tx<'_>, instance_id: i64, save: &Save) -> Result<Saved, StoreError> {
        let named_by = |versions: &[PostVersion<'_>]| {
            reference::together(versions.iter().map(|version| version.post))
        };
        let mut named = named_by(&self.refreshed.recounted);
        reference::hold_missing(tx, instance_id, &mut named)?;
        reference::add(&mut named, &named_by(&self.versions));
        let edited: Vec<i64> = self.versions.iter().map(|version| version.id).collect();
        history::keep(tx, instance_id, &edited, EndedBy::Edit, save.now_ms)?;
        let deleted: Vec<i64> = self.deleted.iter().map(|(id, _)| *id).collect();
        if save.keep_deleted {
            history::keep(tx, instance_id, &deleted, EndedBy::Deletion, save.now_ms)?;
            scoped_content::end_all(tx, instance_id, &deleted, save.now_ms)?;
        } else {
            history::erase(tx, instance_id, &deleted)?;
        }
        post::replace(tx, instance_id, &self.versions)?;
        tx.execute_many_later(
            "update post set deleted_at_ms = r.at_ms, listed = false, raw = null
             from {rows as r(id, at_ms)} where post.id = r.id and post.instance_id = $1",
            &[&instance_id],
            &[
                Column::i64(deleted.iter().copied()),
                Column::i64(self.deleted.iter().map(|(_, at_ms)| *at_ms)),
            ],
        )?;
        let texts: Vec<VersionText<'_>> = self.versions.iter().map(VersionText::from).collect();
        post_text::store(tx, instance_id, &texts, &TakenIds::NONE)?;
        let changed = [edited, deleted].concat();
        post_text::remove_unused(tx, instance_id, &changed)?;
        index_pending::add(tx, instance_id, changed, &TakenIds::NONE)?;
        pending_lookup::give_up(tx, instance_id, &self.given_up)?;
        self.refreshed.write(tx, instance_id, save.now_ms)?;
        // The following locks the clock if it gives an ID.
        reference::assign(tx, instance_id, &named, save.now_ms)?;
        let mut new_ids = NewIds::default();
        let first_id = new_ids.give_run(self.returned.len());
        let places: Vec<_> = self.returned.iter().copied().zip(first_id..).collect();
        let ids = new_ids.take(tx, instance_id, save.now_ms)?;
        post::list_at(tx, instance_id, &places, &ids)?;
        Ok(self.saved)
    }
}
