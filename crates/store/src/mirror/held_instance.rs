//! The instance as intakes hold it: what is stored of its posts, and IDs for what is new.

use std::{borrow::Cow, collections::HashMap};

use driftline_core::{
    post::{Author, Post},
    upstream_id::UpstreamId,
};
use driftline_db::{DbError, Tx};

use super::{
    intake::{CurrentPost, IntakeChanges, PostObservation},
    machine::LockedSource,
};
use crate::{
    error::StoreError,
    new_ids::{NewIds, TakenIds},
    posts::{
        account, instance,
        post::{self, PendingPosts, PendingStored},
        reference::NewReferences,
        rehash::{HashStored, rehash},
    },
    refresh,
    text::without_nul,
};

/// The posts and the accounts that a post names.
pub(crate) fn named_by(post: &Post) -> (&[UpstreamId], &[UpstreamId]) {
    (&post.references.posts, &post.references.accounts)
}

/// What an instance has of observed posts, which was asked for once it is held.
pub(crate) struct PendingInstance {
    instance_id: i64,
    stored: PendingStored,
    accounts: account::PendingAccounts,
    /// How many posts the observed ones name.
    named: usize,
}

/// The same, with the posts asked for that are stored.
pub(crate) struct PendingInstancePosts {
    instance_id: i64,
    posts: PendingPosts,
    accounts: account::Known,
    named: usize,
}

/// What is stored while intakes hold an instance, and what they have decided about it so far.
pub(crate) struct HeldInstance {
    pub(crate) instance_id: i64,
    /// The observed posts and those that they name, by upstream ID.
    pub(crate) posts: HashMap<String, CurrentPost>,
    references: NewReferences,
    /// The observed posts' authors and the accounts that they name, until the new ones are stored.
    accounts: Option<account::Known>,
}

impl PendingInstance {
    /// Holds the instance, so that no other source of it takes in the same posts meanwhile, and asks what
    /// is stored of these observations: for one round trip, and one more for the posts, if any are stored.
    pub(crate) fn ask<'o>(
        tx: &mut Tx<'_>,
        instance_id: i64,
        observations: impl Iterator<Item = &'o PostObservation<'o>> + Clone,
    ) -> Result<PendingInstance, StoreError> {
        let mut named: Vec<Cow<'_, str>> = observations
            .clone()
            .flat_map(|s| named_by(s.post).0)
            .map(|id| without_nul(id.as_str()))
            .collect();
        named.sort_unstable();
        named.dedup();
        let observed = observations.clone().map(|s| &*s.upstream_id);
        let mut upstream_ids: Vec<&str> = observed.chain(named.iter().map(|id| &**id)).collect();
        upstream_ids.sort_unstable();
        upstream_ids.dedup();
        let accounts =
            observations.flat_map(|s| [&s.post.author.id].into_iter().chain(named_by(s.post).1));
        instance::hold(tx, instance_id)?;
        Ok(PendingInstance {
            instance_id,
            stored: post::stored_later(tx, instance_id, &upstream_ids)?,
            accounts: account::Known::load_later(tx, instance_id, accounts)?,
            named: named.len(),
        })
    }

    /// Asks for the posts that are stored.
    pub(crate) fn ask_posts(self, tx: &mut Tx<'_>) -> Result<PendingInstancePosts, StoreError> {
        Ok(PendingInstancePosts {
            instance_id: self.instance_id,
            posts: post::stored_posts_later(tx, self.stored)?,
            accounts: account::Known::read(tx, self.accounts)?,
            named: self.named,
        })
    }
}

impl PendingInstancePosts {
    /// Reads what was asked for, and brings the posts' hashes up to date. References take IDs below those that
    /// are given to entries later: a post that is named was there before.
    pub(crate) fn read(
        self,
        tx: &mut Tx<'_>,
        hash_stored: HashStored,
        new_ids: &mut NewIds,
    ) -> Result<HeldInstance, StoreError> {
        let instance_id = self.instance_id;
        let mut stored = self.posts.read(tx)?;
        let updated = rehash(tx, instance_id, stored.posts.values_mut(), hash_stored)?;
        refresh::set_state_hashes(tx, instance_id, &updated)?;
        let posts = stored.posts.into_iter();
        Ok(HeldInstance {
            instance_id,
            posts: posts
                .map(|(upstream_id, known)| (upstream_id, CurrentPost::stored(known)))
                .collect(),
            references: NewReferences::new(stored.references, new_ids.give_run(self.named)),
            accounts: Some(self.accounts),
        })
    }
}

impl HeldInstance {
    /// Whether an earlier intake of this transaction has changed a post that these observations would change
    /// again: then theirs has to be one of the next transaction, which reads the post as it was stored.
    pub(crate) fn is_ahead_of(
        &self,
        source: &LockedSource,
        observations: &[PostObservation<'_>],
    ) -> bool {
        let needs_refreshing = source.refreshing && source.has_unrefreshed;
        observations.iter().any(|observation| {
            let Some(now) = self.posts.get(&*observation.upstream_id) else {
                return false;
            };
            let (known, post) = (&now.known, observation.post);
            let is_same = now.is_new()
                && !needs_refreshing
                && !known.differs_from(post)
                && known.edited_at_ms == post.edited_at_ms
                && (known.in_public || !source.is_public());
            now.settled && !is_same
        })
    }

    /// Stores the accounts that the changes of its intakes name, and gathers what their posts name.
    pub(crate) fn store_named<'a>(
        &mut self,
        tx: &mut Tx<'_>,
        changes: impl Iterator<Item = &'a IntakeChanges<'a>> + Clone,
    ) -> Result<account::StoredIds, DbError> {
        let versions = || {
            let both = |of: &'a IntakeChanges<'a>| of.new_posts.iter().chain(&of.replaced_posts);
            changes.clone().flat_map(both)
        };
        let authors = changes.clone().flat_map(|of| of.authors.iter().copied());
        let authors: Vec<&Author> = authors.collect();
        let known = match self.accounts.take() {
            Some(known) if !authors.is_empty() => known,
            _ => return Ok(account::StoredIds::default()),
        };
        let named = versions().flat_map(|version| &version.post.references.accounts);
        let accounts = account::store(tx, self.instance_id, known, authors, named)?;
        for version in changes.clone().flat_map(|of| &of.new_posts) {
            self.references.arrives(version);
        }
        for id in versions().flat_map(|version| &version.post.references.posts) {
            let id = without_nul(id.as_str());
            let post = self.posts.get(&*id).map(|post| &post.known);
            self.references.name(&id, post);
        }
        Ok(accounts)
    }

    /// Writes what its posts name, after them.
    pub(crate) fn write_references(self, tx: &mut Tx<'_>, ids: &TakenIds) -> Result<(), DbError> {
        self.references.write(tx, self.instance_id, ids)
    }
}
