//! Stores observations of posts in a source: new, edited and returned posts.

use std::collections::{BTreeSet, HashMap};

use driftline_core::{
    clock::is_older,
    post::{Author, Visibility},
    refresh::{Due, Freshness},
};
use driftline_db::Tx;

use crate::{
    error::StoreError,
    mirror::{
        CommitSummary,
        entry::{self, EntryState},
        locked_instance::{LockedInstance, lock_instance},
        machine::LockedSource,
        observation::{IntakeContext, PostObservation},
    },
    new_ids::NewIds,
    posts::{
        account,
        account_profile::{self, StoredProfiles},
        content_scope::ContentScope,
        history::{self, EndedBy},
        index_pending,
        post::{self, PostVersion, PublishedPost},
        post_text::{self, VersionText},
        reference::NewReferences,
        scoped_content::{self, shows_same_posts},
    },
    refresh::{self, RefreshState},
    text::without_nul,
};

/// Stores observations that may be changes, at different positions, the oldest first.
///
/// Locks the instance before it reads the stored posts, because another source of it may be storing
/// the same ones. Locks the clock only while it writes.
pub(crate) fn take_in(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    observations: &[PostObservation<'_>],
    context: IntakeContext<'_>,
) -> Result<CommitSummary, StoreError> {
    match lock_instance(tx, source, observations, context)? {
        Some(held) => take_in_held(tx, source, observations, context, held),
        None => Ok(CommitSummary::default()),
    }
}

/// [`take_in`] with a locked instance.
pub(crate) fn take_in_held(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    observations: &[PostObservation<'_>],
    context: IntakeContext<'_>,
    held: LockedInstance,
) -> Result<CommitSummary, StoreError> {
    let mut ids = held.entry_ids.into_iter();
    let stored = held.stored.posts.into_iter();
    let mut intake = Intake {
        source,
        context,
        posts: stored
            .map(|(upstream_id, known)| (upstream_id, CurrentPost::new(known, false)))
            .collect(),
        references: NewReferences::new(held.stored.references, held.first_reference_id),
        new_ids: held.new_ids,
        arrival_id: held.arrival_id,
        changes: IntakeChanges::default(),
        new_authors: Vec::new(),
        summary: CommitSummary::default(),
    };
    for observation in observations {
        match &observation.entry {
            None => {
                let id = ids.next().ok_or_else(|| {
                    StoreError::unreadable("IDs", &"there are fewer than new entries")
                })?;
                intake.new_entry(observation, id);
            }
            Some(entry) => intake.old_entry(observation, entry),
        }
    }
    intake.write(tx, held.accounts, &held.profiles)
}

/// A running intake.
struct Intake<'s, 'a> {
    source: &'s mut LockedSource,
    context: IntakeContext<'a>,
    posts: HashMap<String, CurrentPost>,
    references: NewReferences,
    new_ids: NewIds,
    /// The time of arrival of history, as an ID.
    arrival_id: Option<i64>,
    changes: IntakeChanges<'a>,
    /// The authors of the new entries, in their order.
    new_authors: Vec<&'a Author>,
    summary: CommitSummary,
}

/// The changes of one commit, collected before any is written.
#[derive(Default)]
struct IntakeChanges<'a> {
    new_posts: Vec<PostVersion<'a>>,
    new_freshness: Vec<RefreshState>,
    revived_posts: Vec<i64>,
    /// Posts of other sources that are new in this one.
    adopted_posts: Vec<i64>,
    /// Posts that have returned, with their new IDs in the public timeline.
    returned_posts: Vec<(i64, i64)>,
    /// Posts that no public source had, or only as history, and that this one has now.
    published_posts: Vec<PublishedPost>,
    replaced_posts: Vec<PostVersion<'a>>,
    /// Replaced posts whose previous content belonged to a narrower scope, which keeps it.
    narrower_posts: Vec<i64>,
    /// Posts that were shown to the source's scope with other content than their own.
    scoped_posts: Vec<PostVersion<'a>>,
    /// Posts with a later edit than was stored for the source's scope. Other sources' libraries must be notified.
    later_edits: Vec<i64>,
    /// Replaced posts whose previous version is kept, because an edit ended it.
    edited_posts: Vec<i64>,
    authors: Vec<&'a Author>,
    new_entries: Vec<entry::NewEntry<'a>>,
    changed_entries: Vec<entry::Change>,
    /// Entries whose hash has an earlier form, with the hash of their version in the present form.
    entry_hashes: Vec<(i64, i64)>,
}

impl<'a> IntakeChanges<'a> {
    /// All versions to write.
    fn versions(&self) -> impl Iterator<Item = &PostVersion<'a>> {
        self.new_posts.iter().chain(self.replaced_versions())
    }

    /// The versions that take the place of others, or that a narrower scope was shown.
    fn replaced_versions(&self) -> impl Iterator<Item = &PostVersion<'a>> {
        self.replaced_posts.iter().chain(&self.scoped_posts)
    }

    /// The posts that the search index must read again: those with new versions, and those with new
    /// entries or entries that move.
    fn posts_to_index(&self) -> impl Iterator<Item = i64> {
        let new = self.new_entries.iter().map(|new| new.state.post_id);
        let moved = self.changed_entries.iter();
        let moved = moved.filter_map(entry::Change::moved_post);
        let replaced = self.replaced_versions().map(|version| version.id);
        new.chain(moved).chain(replaced)
    }
}

/// A post with the changes collected so far.
struct CurrentPost {
    known: post::KnownPost,
    /// True if this commit has already written it. A second observation in one answer is not an
    /// edit.
    settled: bool,
    /// The ID that it has taken because it returned, until an entry of the source takes over the
    /// ID.
    return_id: Option<i64>,
}

impl CurrentPost {
    fn new(known: post::KnownPost, settled: bool) -> CurrentPost {
        CurrentPost {
            known,
            settled,
            return_id: None,
        }
    }
}

impl<'a> Intake<'_, 'a> {
    fn new_entry(&mut self, observation: &'a PostObservation<'a>, id: i64) {
        if let Some(CurrentPost { known, .. }) = self.posts.get_mut(&*observation.upstream_id) {
            // No client was notified about posts that came as history.
            let is_news = known.listed && known.from_history && !observation.is_history;
            let is_published =
                self.source.shows_world(known.claimed) && (!known.in_public || is_news);
            known.in_public |= is_published;
            // The ID of history has its own time, which readers may have passed.
            let new_entry = Some(id).filter(|_| !observation.is_history);
            self.refresh(observation, new_entry, is_published);
            if is_published {
                self.publish(observation, id);
            }
            if let Some(CurrentPost { known, .. }) = self.posts.get(&*observation.upstream_id)
                && !known.is_gone()
            {
                self.changes.adopted_posts.push(known.id);
            }
        } else {
            self.new_post(observation, id);
        }
        self.changes.authors.push(&observation.post.author);
        let Some(CurrentPost { known, .. }) = self.posts.get(&*observation.upstream_id) else {
            return;
        };
        self.changes.new_entries.push(entry::NewEntry {
            state: EntryState::of(known, id, self.source.library.next_usn()),
            position: observation.position,
            streamed: self.context.streamed,
            // It is known when all is written.
            author_id: None,
            arrival_id: self.arrival_id.filter(|_| observation.is_history),
        });
        self.new_authors.push(&observation.post.author);
        self.summary.new += 1;
    }

    /// Lists a post in the public timeline that only hidden sources had, or history, if it is
    /// public. It gets the ID of this entry, because readers may have passed the others.
    fn publish(&mut self, observation: &PostObservation<'_>, id: i64) {
        let Some(CurrentPost { known, .. }) = self.posts.get_mut(&*observation.upstream_id) else {
            return;
        };
        let is_shown = !known.is_gone() && known.visibility == Visibility::Public;
        let returned = self
            .changes
            .returned_posts
            .iter()
            .any(|(id, _)| *id == known.id);
        let public_id = Some(id).filter(|_| is_shown && !returned);
        known.listed = is_shown;
        known.from_history = public_id.is_some() && observation.is_history;
        self.changes.published_posts.push(PublishedPost {
            id: known.id,
            public_id,
            from_history: known.from_history,
        });
    }

    fn old_entry(&mut self, observation: &'a PostObservation<'a>, entry: &entry::KnownEntry) {
        // An entry never changes its post, so another post at its position is ignored.
        let is_its_post = |now: &CurrentPost| now.known.id == entry.post_id;
        if !self
            .posts
            .get(&*observation.upstream_id)
            .is_some_and(is_its_post)
        {
            return;
        }
        self.refresh(observation, None, false);
        let Some(CurrentPost {
            known, return_id, ..
        }) = self.posts.get_mut(&*observation.upstream_id)
        else {
            return;
        };
        // An answer that was requested before the entry ended does not restore it.
        let asked_at_ms = self.context.asked_at_ms;
        let unlisted_since_ms = entry.unlisted_since_ms();
        if !known.is_gone() && unlisted_since_ms.is_some_and(|at_ms| asked_at_ms < at_ms) {
            return;
        }
        let moves = entry.moves(known);
        if !moves && !entry.differs(known) {
            if entry.content_hash != known.content_hash {
                let hash = (entry.id, known.content_hash);
                self.changes.entry_hashes.push(hash);
            }
            return;
        }
        let mut new_id = None;
        if moves {
            match entry.is_left() {
                true => self.summary.restored += 1,
                false => self.summary.revived += 1,
            }
            new_id = Some(return_id.take().unwrap_or_else(|| self.new_ids.give()));
        } else if !known.is_gone() {
            self.summary.edited += 1;
        }
        let usn = self.source.library.next_usn();
        self.changes
            .changed_entries
            .push(entry.change(known, new_id, usn));
    }

    fn new_post(&mut self, observation: &'a PostObservation<'a>, id: i64) {
        let post = observation.post;
        let claimed = post.is_claimed(&self.source.origin);
        let in_public = self.source.shows_world(claimed);
        let listed = in_public && post.visibility == Visibility::Public;
        self.changes.new_posts.push(PostVersion {
            id,
            post,
            listed,
            in_public,
            from_history: observation.is_history,
            read_at_ms: self.context.asked_at_ms,
            scope: self.source.scope,
        });
        let created_at_ms = post.created_at_ms.or(observation.position_ms);
        let freshness = Freshness {
            source: Some(self.source.id.cast_unsigned()),
            ..Freshness::first(created_at_ms, self.context.asked_at_ms, post.counts)
        };
        // USNs are evenly distributed, unlike the placeholders of IDs.
        let usn = self.source.library.update_count;
        let bucket = refresh::bucket(self.source.instance_id, usn);
        self.changes.new_freshness.push(RefreshState::first(
            (bucket, id),
            freshness,
            match self.source.refreshing {
                true => self.context.policy.due(&freshness.refresh_history()),
                false => Due::Never,
            },
            Some(post.hashes.state),
        ));
        let known = post::KnownPost {
            id,
            upstream_id: observation.upstream_id.to_string(),
            edited_at_ms: post.edited_at_ms,
            read_at_ms: self.context.asked_at_ms,
            content_hash: post.hashes.content,
            deleted_at_ms: None,
            visibility: post.visibility,
            listed,
            in_public,
            claimed,
            from_history: observation.is_history,
            returns: 0,
            kind: post.kind(),
            scope: self.source.scope,
            has_scoped: false,
            other_raw: None,
        };
        let now = CurrentPost::new(known, true);
        self.posts.insert(observation.upstream_id.to_string(), now);
    }

    /// Replaces the stored version if the observation's is newer: the newest answer of a scope
    /// wins. A post that returns takes the ID of its new entry, or a new one of its own, in the
    /// public timeline.
    fn refresh(
        &mut self,
        observation: &'a PostObservation<'a>,
        new_entry: Option<i64>,
        is_published: bool,
    ) {
        let (asked_at_ms, now_ms) = (self.context.asked_at_ms, self.context.now_ms);
        let is_older = |than_ms| is_older(asked_at_ms, than_ms, now_ms);
        let post = observation.post;
        let Some(now) = self.posts.get_mut(&*observation.upstream_id) else {
            return;
        };
        let known = &mut now.known;
        let returns = known
            .deleted_at_ms
            .is_some_and(|deleted_at_ms| !self.context.streamed && !is_older(deleted_at_ms));
        let is_newer = post.edited_at_ms > known.edited_at_ms
            || (post.edited_at_ms == known.edited_at_ms
                && known.differs_from(post)
                && !is_older(known.read_at_ms));
        if now.settled {
            return;
        }
        // Servers agree on edits. Other differences may be between the tokens of two sources, which would take turns.
        if known.deleted_at_ms.is_none() && post.edited_at_ms > known.edited_at_ms {
            self.changes.later_edits.push(known.id);
        }
        let scope = self.source.scope;
        // The world's answers replace those shown to narrower scopes, even newer ones.
        let is_widened = scope == ContentScope::WORLD && known.scope != scope;
        let is_scoped = scope != ContentScope::WORLD && known.scope != scope;
        if is_scoped && !returns {
            let is_unlike = || match (&known.other_raw, known.scope) {
                // An answer that is behind an edit is no content of its own.
                _ if post.edited_at_ms < known.edited_at_ms => false,
                (Some(other), ContentScope::WORLD) => !shows_same_posts(other, &post.raw),
                (_, ContentScope::WORLD) => false,
                // This scope may not read what was shown to the other one.
                _ => !known.has_scoped,
            };
            if known.deleted_at_ms.is_none() && (is_newer || is_unlike()) {
                now.settled = true;
                known.edited_at_ms = post.edited_at_ms;
                known.read_at_ms = asked_at_ms;
                known.content_hash = post.hashes.content;
                known.visibility = post.visibility;
                known.has_scoped = true;
                self.changes.authors.push(&post.author);
                self.changes.scoped_posts.push(PostVersion {
                    id: known.id,
                    post,
                    listed: known.listed,
                    in_public: known.in_public,
                    from_history: known.from_history,
                    read_at_ms: asked_at_ms,
                    scope,
                });
            }
            return;
        }
        let is_edit = known.deleted_at_ms.is_none() && (is_newer || is_widened);
        if !(returns || is_edit) {
            return;
        }
        let is_public = post.visibility == Visibility::Public;
        // The world sees a post again that only a narrower scope had seen again.
        let is_back = !returns && is_widened && known.in_public && !known.listed && !is_published;
        if returns {
            self.changes.revived_posts.push(known.id);
        } else {
            let other = known.other_raw.as_deref().unwrap_or_default();
            let is_alike = !known.differs_from(post) && shows_same_posts(other, &post.raw);
            match (is_widened, is_alike) {
                (false, _) => self.changes.edited_posts.push(known.id),
                (true, false) => self.changes.narrower_posts.push(known.id),
                (true, true) => {}
            }
        }
        if returns || is_back && is_public {
            let public_id = match new_entry {
                Some(id) => id,
                None => *now.return_id.insert(self.new_ids.give()),
            };
            self.changes.returned_posts.push((known.id, public_id));
            known.returns += 1;
            known.from_history = false;
        }
        let listed = is_public
            && match returns {
                // A post that only a narrower scope sees again has not returned for the world.
                true => known.in_public && [known.scope, ContentScope::WORLD].contains(&scope),
                // Readers have passed its ID, so a post that was not listed there stays unlisted.
                false => known.listed || is_back,
            };
        now.settled = true;
        known.edited_at_ms = post.edited_at_ms;
        known.read_at_ms = asked_at_ms;
        known.content_hash = post.hashes.content;
        known.deleted_at_ms = None;
        known.visibility = post.visibility;
        known.listed = listed;
        known.scope = scope;
        known.has_scoped = false;
        self.changes.authors.push(&post.author);
        self.changes.replaced_posts.push(PostVersion {
            id: known.id,
            post,
            listed,
            in_public: known.in_public,
            from_history: known.from_history,
            read_at_ms: asked_at_ms,
            scope,
        });
    }

    fn write(
        self,
        tx: &mut Tx<'_>,
        known: account::KnownAccount,
        profiles: &StoredProfiles,
    ) -> Result<CommitSummary, StoreError> {
        let IntakeContext {
            asked_at_ms,
            now_ms,
            policy,
            ..
        } = self.context;
        let (source, mut changes, mut references) = (self.source, self.changes, self.references);
        let instance_id = source.instance_id;
        let mut accounts = account::StoredIds::default();
        if !changes.authors.is_empty() {
            let named = changes.versions();
            let named = named.flat_map(|version| &version.post.references.accounts);
            let authors = changes.authors.iter().copied();
            accounts = account::store(tx, instance_id, known, authors.clone(), named)?;
            let usn = source.library.update_count;
            account_profile::store(tx, source.key, profiles, &accounts, authors, usn, now_ms)?;
            for version in &changes.new_posts {
                references.arrives(version);
            }
            let named = changes.versions();
            for id in named.flat_map(|version| &version.post.references.posts) {
                let id = without_nul(id.as_str());
                references.name(&id, self.posts.get(&*id).map(|post| &post.known));
            }
        }
        for (entry, author) in changes.new_entries.iter_mut().zip(&self.new_authors) {
            entry.author_id = accounts.of(author).map(|stored| stored.acct_id);
        }
        let changes = changes;
        history::keep(
            tx,
            instance_id,
            &changes.edited_posts,
            EndedBy::Edit,
            now_ms,
        )?;
        scoped_content::keep_own(tx, instance_id, &changes.narrower_posts)?;
        post::replace(tx, instance_id, &changes.replaced_posts)?;
        scoped_content::store(tx, instance_id, source.scope, &changes.scoped_posts, now_ms)?;
        refresh::revive(tx, instance_id, policy, asked_at_ms, &changes.revived_posts)?;
        if source.refreshing && source.has_unrefreshed {
            let pending = refresh::PendingUnrefreshed::ask(tx, instance_id)?;
            let adopted = pending.among(tx, &changes.adopted_posts)?;
            let adopted: Vec<i64> = adopted.into_iter().collect();
            // No request was sent for them, so their last answers stay the last.
            refresh::revive(tx, instance_id, policy, i64::MIN, &adopted)?;
        }
        // Other sources with these posts change their entries below their own roots.
        let news = changes.returned_posts.iter().map(|(id, _)| *id);
        let news: BTreeSet<i64> = news.chain(changes.later_edits.iter().copied()).collect();
        let news: Vec<(i64, bool)> = news.into_iter().map(|id| (id, false)).collect();
        refresh::add_to_outbox(tx, instance_id, now_ms, &news)?;
        // Here the clock is locked, if it was not for history. From here on nothing is awaited.
        let ids = self.new_ids.take(tx, instance_id, now_ms)?;
        post::insert(
            tx,
            (instance_id, source.id),
            &changes.new_posts,
            &accounts,
            &ids,
        )?;
        references.write(tx, instance_id, &ids)?;
        refresh::insert(tx, instance_id, &changes.new_freshness, &ids)?;
        post::list_at(tx, instance_id, &changes.returned_posts, &ids)?;
        post::publish(tx, instance_id, &changes.published_posts, &ids)?;
        entry::insert(tx, source.key, now_ms, &changes.new_entries, &ids)?;
        entry::change(tx, source.key, &changes.changed_entries, &ids)?;
        entry::set_hashes(tx, source.key, &changes.entry_hashes)?;
        let texts: Vec<VersionText<'_>> = changes.versions().map(VersionText::from).collect();
        post_text::store(tx, instance_id, &texts, &ids)?;
        let replaced: Vec<i64> = changes.replaced_versions().map(|of| of.id).collect();
        post_text::remove_unused(tx, instance_id, &replaced)?;
        index_pending::add(tx, instance_id, changes.posts_to_index(), &ids)?;
        Ok(self.summary)
    }
}
