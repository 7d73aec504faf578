//! An instance that an intake has locked, with its stored posts and the IDs for new ones.

use std::borrow::Cow;

use driftline_core::{post::Post, upstream_id::UpstreamId};
use driftline_db::Tx;

use crate::mirror::{
    machine::LockedSource,
    observation::{IntakeContext, PostObservation},
    past_ids,
};
use crate::{
    error::StoreError,
    new_ids::NewIds,
    posts::{account, account_profile::StoredProfiles, instance, post},
    reservation,
    text::without_nul,
};

/// The posts and the accounts to which a post refers.
pub(crate) fn named_by(post: &Post) -> (&[UpstreamId], &[UpstreamId]) {
    (&post.references.posts, &post.references.accounts)
}

/// The stored state while an intake locks its instance, and the IDs that it gives.
pub(crate) struct LockedInstance {
    /// An ID for each observation without an entry, in their order.
    pub(crate) entry_ids: Vec<i64>,
    /// The time of arrival of history, if there is any: see [`past_ids::PastIds`].
    pub(crate) arrival_id: Option<i64>,
    /// The first of the IDs for the posts to which the observations refer. They are below the
    /// entries' present IDs, because those posts existed before.
    pub(crate) first_reference_id: i64,
    /// The source of present IDs.
    pub(crate) new_ids: NewIds,
    /// The stored state of the observed posts and their references.
    pub(crate) stored: post::Stored,
    /// The observed posts' authors and the accounts to which the posts refer.
    pub(crate) accounts: account::KnownAccount,
    /// The observed posts' authors, as shown by the source.
    pub(crate) profiles: StoredProfiles,
}

/// Locks the instance, so that no other source of it stores the same posts meanwhile, and then
/// reads the stored state. For history, whose IDs must be free, it also locks the clock. `None`
/// without observations, which need no lock.
pub(crate) fn lock_instance(
    tx: &mut Tx<'_>,
    source: &LockedSource,
    observations: &[PostObservation<'_>],
    context: IntakeContext<'_>,
) -> Result<Option<LockedInstance>, StoreError> {
    if observations.is_empty() {
        return Ok(None);
    }
    let new = || observations.iter().filter(|s| s.entry.is_none());
    let mut named: Vec<Cow<'_, str>> = observations
        .iter()
        .flat_map(|s| named_by(s.post).0)
        .map(|id| without_nul(id.as_str()))
        .collect();
    named.sort_unstable();
    named.dedup();
    let observed = observations.iter().map(|s| &*s.upstream_id);
    let mut upstream_ids: Vec<&str> = observed.chain(named.iter().map(|id| &**id)).collect();
    upstream_ids.sort_unstable();
    upstream_ids.dedup();
    let accounts = observations
        .iter()
        .flat_map(|s| [&s.post.author.id].into_iter().chain(named_by(s.post).1));
    // One round trip with the instance's lock, and one for the posts, if any are stored.
    instance::hold(tx, source.instance_id)?;
    let stored = post::stored_later(tx, (source.instance_id, source.scope), &upstream_ids)?;
    let accounts = account::KnownAccount::load_later(tx, source.instance_id, accounts)?;
    let authors = observations.iter().map(|s| &s.post.author);
    let profiles = StoredProfiles::ask(tx, source.key, authors)?;
    let stored = post::read_stored(tx, stored)?;
    let accounts = account::KnownAccount::read(tx, accounts)?;
    let profiles = StoredProfiles::read(tx, profiles)?;
    let now_ms = context.now_ms;
    // A post without a time is placed next to the one above it.
    let mut last_ms = now_ms;
    let times_ms = new().rev().filter(|s| s.is_history).map(|s| {
        last_ms = s.position_ms.or(s.post.created_at_ms).unwrap_or(last_ms);
        last_ms
    });
    let times_ms: Vec<i64> = times_ms.collect();
    let past = match times_ms.is_empty() {
        true => None,
        false => Some(reservation::place_history(
            tx,
            source.instance_id,
            now_ms,
            |tx| past_ids::take(tx, &times_ms, now_ms),
        )?),
    };
    let arrival_id = past.as_ref().map(|past| past.arrival_id);
    let mut history = past.into_iter().flat_map(|past| past.ids.into_iter().rev());
    let mut new_ids = NewIds::default();
    let first_reference_id = new_ids.give_run(named.len());
    let entry_ids = new().map(|observation| match observation.is_history {
        true => history.next(),
        false => Some(new_ids.give()),
    });
    Ok(Some(LockedInstance {
        entry_ids: entry_ids.flatten().collect(),
        arrival_id,
        first_reference_id,
        new_ids,
        stored,
        accounts,
        profiles,
    }))
}
