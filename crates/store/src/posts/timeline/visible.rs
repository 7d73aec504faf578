//! Decides which posts a viewer may see. No other code does.
//!
//! A viewer sees a post by its entries: by one of a source that the viewer may read, as far as that is shown posts as
//! narrow as this one is, or ever was since it has the entry. Statements of timelines choose entries by the same
//! columns, so that they read few in vain; what is shown is decided here.

use std::collections::HashSet;

use driftline_core::post::Visibility;
use driftline_db::Tx;

use super::{
    entries::{PostEntry, entries},
    stored::{self, StoredPost},
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, sql},
    posts::find,
    viewer::{ReadableSources, Viewer},
};

impl PostEntry {
    /// How narrow its post is, or ever was since it has the entry.
    pub(super) fn narrowness(&self, found: &StoredPost) -> i64 {
        self.visibility.max(found.post.visibility.narrowness())
    }

    /// Whether a viewer may read its source, as far as that showed it; also of one that has ended.
    pub(super) fn is_readable(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        let source = readable.of_raw(self.source_id);
        source.is_some_and(|source| source.shows_post(self.narrowness(found), found.claimed))
    }

    /// Whether its source shows it to a viewer.
    pub(super) fn is_shown(&self, readable: &ReadableSources, found: &StoredPost) -> bool {
        !self.gone && found.is_alive() && self.is_readable(readable, found)
    }
}

/// Whether a viewer who may see a post may know that ID of it, which may be one that an entry of a source had.
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

/// Those of these posts of an instance that a viewer may see, also deleted ones: a source that the viewer may read
/// has them, or had, or the operator keeps them without one.
pub fn visible(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
    viewer: Viewer,
) -> Result<HashSet<LocalId>, StoreError> {
    if posts.is_empty() || viewer == Viewer::Operator && is_operators_alone(tx, instance)? {
        return Ok(posts.iter().copied().collect());
    }
    let readable = ReadableSources::load(tx, viewer)?;
    let ids: Vec<i64> = posts.iter().map(|id| sql(*id)).collect();
    let stored = stored::by_ids(tx, &ids, Some(&[sql(instance)]), viewer)?;
    let entries = entries(tx, &stored.values())?;
    let has_entry: HashSet<i64> = entries.iter().map(|entry| entry.post_id).collect();
    let is_readable = |entry: &&PostEntry| {
        let found = stored.get(&entry.post_id);
        found.is_some_and(|found| entry.is_readable(&readable, found))
    };
    let shown: HashSet<i64> = entries
        .iter()
        .filter(is_readable)
        .map(|entry| entry.post_id)
        .collect();
    let is_kept = |found: &StoredPost| {
        let is_public = found.in_public && found.post.visibility == Visibility::Public;
        is_public && !has_entry.contains(&found.id())
    };
    let seen = stored
        .values()
        .filter(|found| shown.contains(&found.id()) || is_kept(found));
    Ok(seen.map(|found| found.post.post_id).collect())
}

/// Whether no account has anything of an instance, threads included.
fn is_operators_alone(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let of_account = tx.query_opt(
        "select id from source where instance_id = $1 and owner_id <> 0 limit 1",
        &[&sql(instance)],
        |row| row.i64("id"),
    )?;
    Ok(of_account.is_none())
}

/// Whether a viewer may see a stored post.
pub fn is_visible(tx: &mut Tx<'_>, post: LocalId, viewer: Viewer) -> Result<bool, StoreError> {
    let Some(instance) = find::instance_of(tx, post)? else {
        return Ok(false);
    };
    Ok(visible(tx, instance, &[post], viewer)?.contains(&post))
}
