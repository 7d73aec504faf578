//! Tracked posts: posts that were requested by their upstream ID, and their entries in a source of
//! tracked posts once they are found.

use std::collections::{BTreeMap, HashMap, HashSet};

use driftline_core::{
    post::{Post, Visibility},
    refresh::{LookupOutcome, Policy},
    tracking::TrackOutcome,
    upstream_id::UpstreamId,
};
use driftline_db::{ToValue, Tx};

pub use crate::mirror::sources::forget_tracked::{Forgotten, ForgottenCounts, forget, forgettable};
use crate::mirror::{
    entry::{self, EntryState},
    machine::LockedSource,
    observation::{IntakeContext, PostObservation},
    past_ids, post_intake,
};
use crate::{
    error::StoreError,
    id_types::{LocalId, SourceKey, from_sql},
    new_ids::TakenIds,
    posts::{
        content_scope::ReadableScopes,
        index_pending, instance,
        post::{self, PublishedPost},
        timeline::visible::visible,
    },
    refresh::{
        self, AnsweredLookup, LookupAnswer, LookupTarget,
        pending_lookup::{self, LookupState},
    },
    reservation,
    text::without_nul,
    viewer::Viewer,
};

/// The states of requested IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedLookups {
    /// The number of IDs that will be looked up.
    pub new: u64,
    /// The number of IDs whose posts are already stored.
    pub stored: u64,
    /// The number of IDs that were requested before. Their look-ups are pending or have failed.
    pub known: u64,
}

/// The number of posts of a source of tracked posts, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackedCounts {
    /// The number of IDs whose look-ups are pending.
    pub waiting: u64,
    /// The number of IDs whose look-ups have failed.
    pub missing: u64,
    /// The number of stored posts.
    pub found: u64,
}

/// Adds look-ups of upstream IDs, each at most once. They are due at once, and their posts are
/// stored in the source; with `once` these are not refreshed afterwards. A post that is already
/// stored gets an entry there, if it has none, and without `once` a due time, if the policy has one
/// for it. Must be written below [`crate::mirror::source::root`] of the source.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn add_lookups(
    tx: &mut Tx<'_>,
    source: SourceKey,
    upstream_ids: &[String],
    once: bool,
    policy: &Policy,
    now_ms: i64,
) -> Result<AddedLookups, StoreError> {
    let mut held = LockedSource::load(tx, source, None)?;
    let instance_id = held.instance_id;
    // Another source of the instance may be storing the same posts.
    instance::hold(tx, instance_id)?;
    let stable = |id: &String| UpstreamId::from(&*without_nul(id)).stable();
    let ids: Vec<UpstreamId> = upstream_ids.iter().map(stable).collect();
    let ids: Vec<&str> = ids.iter().map(UpstreamId::as_str).collect();
    let stored = post::stored(tx, (instance_id, held.scope), &ids)?;
    let mut stored = seen_by_operator(tx, source, stored.posts)?;
    // Content that the source's readers were not shown is looked up for them.
    let readable = ReadableScopes::of_scope(held.scope);
    stored.retain(|_, post| post.is_gone() || post.has_scoped || readable.has(post.scope));
    let known = pending_lookup::known(tx, instance_id, &ids)?;
    if !once && held.refreshing {
        let alive = stored.values().filter(|post| !post.is_gone());
        let alive: Vec<i64> = alive.map(|post| post.id).collect();
        // No request was sent, so their last answers stay the last.
        refresh::revive(tx, instance_id, policy, i64::MIN, &alive)?;
    }
    adopt(tx, &mut held, &stored, now_ms)?;
    let mut once_each = HashSet::new();
    let new: Vec<&str> = ids
        .into_iter()
        .filter(|id| !stored.contains_key(*id) && !known.contains(*id) && once_each.insert(*id))
        .collect();
    let added = AddedLookups {
        new: new.len() as u64,
        stored: stored.len() as u64,
        // A source may have stored a post while its look-up was pending.
        known: known.iter().filter(|id| !stored.contains_key(*id)).count() as u64,
    };
    if new.is_empty() {
        return Ok(added);
    }
    pending_lookup::insert(tx, (instance_id, held.id), &new, once, now_ms)?;
    Ok(added)
}

/// The posts that the operator, who requests posts, may see. A post that only accounts' private
/// sources have counts as not stored.
fn seen_by_operator(
    tx: &mut Tx<'_>,
    source: SourceKey,
    mut stored: HashMap<String, post::KnownPost>,
) -> Result<HashMap<String, post::KnownPost>, StoreError> {
    let ids = stored.values().map(|post| from_sql(post.id));
    let ids = ids.collect::<Result<Vec<LocalId>, _>>()?;
    let seen = visible(tx, source.instance, &ids, Viewer::Operator)?;
    stored.retain(|_, post| seen.contains(&LocalId::new(post.id.cast_unsigned())));
    Ok(stored)
}

/// Gives stored posts without an entry in the source one, at the time of their creation.
fn adopt(
    tx: &mut Tx<'_>,
    held: &mut LockedSource,
    stored: &HashMap<String, post::KnownPost>,
    now_ms: i64,
) -> Result<(), StoreError> {
    if stored.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = stored.values().map(|post| post.id).collect();
    let known = entry::of_posts(tx, held.key, &ids)?;
    let known: HashSet<i64> = known.iter().map(|entry| entry.post_id).collect();
    let mut missing: Vec<(&String, &post::KnownPost)> = stored
        .iter()
        .filter(|(_, post)| !known.contains(&post.id))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    missing.sort_by_key(|(_, post)| post.id);
    let found = post::authors_and_times(tx, held.instance_id, &ids)?;
    let found = |id: i64| found.get(&id).copied().unwrap_or_default();
    let times_ms = missing.iter().rev().map(|(_, post)| found(post.id));
    let times_ms: Vec<i64> = times_ms
        .map(|found| found.created_at_ms.unwrap_or(now_ms))
        .collect();
    let past = reservation::place_history(tx, held.instance_id, now_ms, |tx| {
        past_ids::take(tx, &times_ms, now_ms)
    })?;
    let new: Vec<entry::NewEntry<'_>> = past
        .ids
        .into_iter()
        .rev()
        .zip(&missing)
        .map(|(id, (upstream_id, post))| entry::NewEntry {
            state: EntryState::of(post, id, held.library.next_usn()),
            position: upstream_id,
            streamed: false,
            author_id: found(post.id).author_id,
            arrival_id: Some(past.arrival_id),
        })
        .collect();
    let ids = &TakenIds::NONE;
    post::publish(tx, held.instance_id, &published(held, &new, &missing), ids)?;
    entry::insert(tx, held.key, now_ms, &new, ids)?;
    let adopted = new.iter().map(|new| new.state.post_id);
    index_pending::add(tx, held.instance_id, adopted, ids)?;
    Ok(held.library.save(tx)?)
}

/// Among posts that are new in a source, those that no public source had, if the world may read
/// this one. Each comes with the ID of its entry, where the public timeline lists it.
fn published(
    held: &LockedSource,
    new: &[entry::NewEntry<'_>],
    posts: &[(&String, &post::KnownPost)],
) -> Vec<PublishedPost> {
    let posts = posts.iter().zip(new);
    let hidden = posts.filter(|((_, post), _)| held.shows_world(post.claimed) && !post.in_public);
    let listed = hidden.map(|((_, post), new)| {
        let is_shown = !post.is_gone() && post.visibility == Visibility::Public;
        PublishedPost {
            id: post.id,
            public_id: Some(new.state.id).filter(|_| is_shown),
            from_history: is_shown,
        }
    });
    listed.collect()
}

/// Stores the posts that pending look-ups of one source found, among these answers, each at the
/// time of its creation, and removes these look-ups. Must be written below
/// [`crate::mirror::source::root`] of the source. Returns the number of posts that the source did
/// not have.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn hydrate(
    tx: &mut Tx<'_>,
    source: SourceKey,
    answers: &[AnsweredLookup],
    policy: &Policy,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut held = LockedSource::load(tx, source, None)?;
    let lookup_id = |answered: &AnsweredLookup| match answered.what {
        LookupTarget::Pending { lookup_id, .. } => Some(lookup_id),
        LookupTarget::Stored(_) => None,
    };
    let ids: Vec<i64> = answers.iter().filter_map(lookup_id).collect();
    let lookups = pending_lookup::by_ids(tx, held.instance_id, &ids)?;
    let (mut new, mut done) = (0, Vec::new());
    let mut found: BTreeMap<(bool, i64), Vec<&Post>> = BTreeMap::new();
    for answered in answers {
        if let (Some(id), LookupAnswer::Found(post)) = (lookup_id(answered), &answered.answer)
            && let Some(lookup) = lookups.get(&id)
            && lookup.source_id == held.id
        {
            let found = found.entry((lookup.once, answered.asked_at_ms));
            found.or_default().push(post);
            done.push(id);
        }
    }
    let never = Policy::Never {
        ages: policy.ages().clone(),
    };
    for ((once, asked_at_ms), posts) in found {
        let positions: Vec<&str> = posts.iter().map(|post| post.id.as_str()).collect();
        let mut known = entry::at(tx, held.key, &positions)?;
        let observations: Vec<PostObservation<'_>> = posts
            .iter()
            .map(|post| {
                let position = post.id.as_str();
                let observation =
                    PostObservation::new(post, position, None, known.remove(position));
                PostObservation {
                    is_history: true,
                    ..observation
                }
            })
            .filter(PostObservation::may_be_news)
            .collect();
        let policy = if once { &never } else { policy };
        let context = IntakeContext::answered(asked_at_ms, now_ms, policy);
        new += post_intake::take_in(tx, &mut held, &observations, context)?.new;
    }
    held.library.save(tx)?;
    pending_lookup::remove(tx, held.instance_id, &done)?;
    Ok(new)
}

/// The states of the posts with these upstream IDs, in their order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn outcomes(
    tx: &mut Tx<'_>,
    source: SourceKey,
    upstream_ids: &[String],
) -> Result<Vec<TrackOutcome>, StoreError> {
    let instance_id = source.instance_id();
    let stable = |id: &String| UpstreamId::from(&*without_nul(id)).stable();
    let ids: Vec<UpstreamId> = upstream_ids.iter().map(stable).collect();
    let mut distinct: Vec<&str> = ids.iter().map(UpstreamId::as_str).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let stored = post::known(tx, instance_id, &distinct)?;
    let stored = seen_by_operator(tx, source, stored)?;
    distinct.retain(|id| !stored.contains_key(*id));
    let lookups = pending_lookup::states(tx, instance_id, &distinct)?;
    let outcome = |id: &UpstreamId| {
        if let Some(post) = stored.get(id.as_str()) {
            return match post.is_gone() {
                true => TrackOutcome::Deleted,
                false => TrackOutcome::Found,
            };
        }
        match lookups.get(id.as_str()) {
            None => TrackOutcome::Unknown,
            Some(LookupState::Waits) => TrackOutcome::Waiting,
            Some(LookupState::GivenUp(Some(LookupOutcome::Hidden))) => TrackOutcome::NotVisible,
            Some(LookupState::GivenUp(Some(LookupOutcome::Failed))) => TrackOutcome::Failed,
            Some(LookupState::GivenUp(_)) => TrackOutcome::Gone,
        }
    };
    Ok(ids.iter().map(outcome).collect())
}

/// Counts the rows of a source of tracked posts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn tracked_counts(tx: &mut Tx<'_>, source: SourceKey) -> Result<TrackedCounts, StoreError> {
    let key: [&dyn ToValue; 2] = [&source.id(), &source.instance_id()];
    let mut count = |what: &str| {
        let sql = format!("select count(*) as found from {what}");
        tx.query_one(&sql, &key, |row| row.i64("found"))
    };
    Ok(TrackedCounts {
        waiting: count("pending_lookup where source_id = $1 and instance_id = $2 and waits")?
            .cast_unsigned(),
        missing: count("pending_lookup where source_id = $1 and instance_id = $2 and not waits")?
            .cast_unsigned(),
        found: count("entry where source_id = $1 and instance_id = $2")?.cast_unsigned(),
    })
}
