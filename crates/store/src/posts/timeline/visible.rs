//! Decides if a viewer may see a post. No other code does.
//!
//! A viewer sees a post through its entries: through an entry of a source that the viewer may read,
//! if that source shows the viewer posts of the narrowest visibility that this one has had since it
//! has the entry. Statements of timelines select entries by the same columns, so that they read few
//! in vain; the decision is made here.

use std::collections::{HashMap, HashSet};

use driftline_core::post::Visibility;
use driftline_db::Tx;

use super::{
    entries::{PostEntry, entries},
    first_places::id_time_ms,
    stored_post::{self, StoredPost},
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, sql},
    posts::instance,
    viewer::{ReadableSources, Viewer},
};

impl PostEntry {
    /// The narrowest visibility that its post has had since it has the entry.
    pub(super) fn narrowness(&self, found: &StoredPost) -> i64 {
        self.visibility.max(found.post.visibility.narrowness())
    }

    /// True if a viewer may read its source, as far as that showed the entry; also if the entry has
    /// ended.
    pub(super) fn is_readable(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        let source = readable.of_raw(self.source_id);
        source.is_some_and(|source| source.shows_post(self.narrowness(found), found.claimed))
    }

    /// True if its source shows it to a viewer.
    pub(super) fn is_shown(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        !self.gone && found.is_alive() && self.is_readable(readable, found)
    }
}

/// True if a viewer who may see a post may know this ID of it, which may have belonged to an entry
/// of a source.
pub(super) fn may_know(
    id: i64,
    alias_source: Option<i64>,
    found: &StoredPost,
    entries: &[PostEntry],
    readable: &ReadableSources,
) -> bool {
    if found.listed && sql(found.post.public_id) == id {
        return true;
    }
    let mut own = entries.iter().filter(|entry| entry.post_id == found.id());
    match own.find(|entry| entry.id == id) {
        Some(entry) => entry.is_readable(readable, found),
        None if id == found.id() => readable.of_raw(found.first_source_id).is_some(),
        None => alias_source.is_none_or(|source| readable.of_raw(source).is_some()),
    }
}

/// Those of these posts of an instance that a viewer may see, including deleted ones: a source that
/// the viewer may read has or had them, or the operator keeps them without a source.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn visible(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
    viewer: Viewer,
) -> Result<HashSet<LocalId>, StoreError> {
    if posts.is_empty() || viewer == Viewer::Operator && is_operators_alone(tx, instance)? {
        return Ok(posts.iter().copied().collect());
    }
    Ok(seen_since_each(tx, instance, posts, viewer)?
        .into_keys()
        .collect())
}

/// The time since which a viewer may have seen a post, in Unix ms: the time at which the first
/// source that the viewer may read got it. Only sources that are hidden from the viewer can have
/// shown it before. `None` if the viewer may not see it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn seen_since(
    tx: &mut Tx<'_>,
    post: LocalId,
    viewer: Viewer,
) -> Result<Option<i64>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(None);
    };
    Ok(seen_since_each(tx, instance, &[post], viewer)?.remove(&post))
}

/// [`seen_since`] for posts of an instance. Those that the viewer may not see are missing. A post
/// that the operator keeps without a source counts from its place in the world's public timeline.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn seen_since_each(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
    viewer: Viewer,
) -> Result<HashMap<LocalId, i64>, StoreError> {
    let readable = ReadableSources::load(tx, viewer)?;
    let ids: Vec<i64> = posts.iter().map(|id| sql(*id)).collect();
    let stored = stored_post::by_ids(tx, &ids, Some(&[sql(instance)]), viewer)?;
    let (mut has_entry, mut is_in_world) = (HashSet::new(), HashSet::new());
    let mut since: HashMap<LocalId, i64> = HashMap::new();
    let mut see = |found: &StoredPost, at_ms: i64| {
        let first = since.entry(found.post.post_id).or_insert(at_ms);
        *first = at_ms.min(*first);
    };
    for entry in entries(tx, &stored.values())? {
        has_entry.insert(entry.post_id);
        let source = readable.of_raw(entry.source_id);
        let found = stored.get(&entry.post_id);
        if let (Some(source), Some(found)) = (source, found)
            && source.shows_world(found.claimed)
        {
            is_in_world.insert(entry.post_id);
        }
        if let Some(found) = found.filter(|found| entry.is_readable(&readable, found)) {
            see(found, entry.arrived_at_ms);
        }
    }
    let is_kept = |found: &StoredPost| match has_entry.contains(&found.id()) {
        // Only the operator can keep posts. A post that was never public to the world is recognised
        // by having no entry.
        false if viewer == Viewer::Operator => true,
        _ => {
            let is_public = found.in_public && found.post.visibility == Visibility::Public;
            is_public && !is_in_world.contains(&found.id())
        }
    };
    for found in stored.values().filter(|found| is_kept(found)) {
        see(found, id_time_ms(sql(found.post.public_id)));
    }
    Ok(since)
}

/// True if no account has anything of an instance, including threads.
fn is_operators_alone(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let of_account = tx.query_opt(
        "select id from source where instance_id = $1 and owner_id <> 0 limit 1",
        &[&sql(instance)],
        |row| row.i64("id"),
    )?;
    Ok(of_account.is_none())
}

/// True if a viewer may see a stored post.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn is_visible(tx: &mut Tx<'_>, post: LocalId, viewer: Viewer) -> Result<bool, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(false);
    };
    Ok(visible(tx, instance, &[post], viewer)?.contains(&post))
}
