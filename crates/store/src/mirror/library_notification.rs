//! Notifies the libraries of sources about posts that refreshes, or other sources' polls, have changed.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, Tx};

use crate::mirror::{entry, machine::LockedSource};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, SourceId, SourceKey, from_sql, sql},
    new_ids::NewIds,
    posts::{content_scope::ReadableScopes, index_pending, instance, post},
    refresh::OutboxItem,
};

/// Notifies a source's library. Each of its entries of these posts that differs from the post, or
/// whose counts have changed, takes the next USN. An entry whose post has returned moves to a new
/// ID, above all that readers have seen, unless it had left the source before. Must be written
/// below [`crate::mirror::source::root`] of the source. Returns the number of entries that took a
/// USN.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn notify(tx: &mut Tx<'_>, source: SourceKey, items: &[OutboxItem]) -> Result<u64, StoreError> {
    let mut held = LockedSource::load(tx, source, None)?;
    let ids: Vec<i64> = items.iter().map(|item| sql(item.post)).collect();
    let entries = entry::of_posts(tx, held.key, &ids)?;
    if entries.is_empty() {
        return Ok(0);
    }
    let newest_ms = items.iter().map(|item| item.since_ms).max();
    let now_ms = newest_ms.unwrap_or_default();
    // The instance is locked so that no other source changes a post whose entry moves meanwhile. An
    // entry that has left does not move.
    let may_move = |entry: &entry::KnownEntry| !entry.is_left() && (entry.gone || entry.stale);
    if entries.iter().any(may_move) {
        instance::hold(tx, held.instance_id)?;
    }
    let posts = post::by_ids(tx, (held.instance_id, held.scope), &ids)?;
    let readable = ReadableScopes::of_scope(held.scope);
    let recounted = items.iter().filter(|item| item.counts);
    let recounted: HashSet<i64> = recounted.map(|item| sql(item.post)).collect();
    let (mut changes, mut left) = (Vec::new(), Vec::new());
    let mut new_ids = NewIds::default();
    for entry in entries {
        let Some(post) = posts.get(&entry.post_id) else {
            continue;
        };
        // Content that its readers were not shown is not a change for them. A post that has returned for others alone has
        // ended for them.
        if !post.is_gone() && !post.has_scoped && !readable.has(post.scope) {
            if entry.stale && !entry.gone {
                changes.push(entry.end(post, held.library.next_usn()));
            }
            continue;
        }
        // Only a page shows that the source lists it again.
        if entry.is_left() && !post.is_gone() {
            continue;
        }
        if entry.left_before_ms.is_some() && !post.is_gone() {
            left.push((entry.id, held.library.next_usn()));
            continue;
        }
        let has_counts = recounted.contains(&entry.post_id) && !post.is_gone();
        let moves = entry.moves(post);
        if moves || entry.differs(post) || has_counts {
            let new_id = moves.then(|| new_ids.give());
            changes.push(entry.change(post, new_id, held.library.next_usn()));
        }
    }
    let ids = new_ids.take(tx, held.instance_id, now_ms)?;
    entry::change(tx, held.key, &changes, &ids)?;
    let moved = changes.iter().filter_map(entry::Change::moved_post);
    index_pending::add(tx, held.instance_id, moved, &ids)?;
    entry::leave_as_before(tx, held.key, &left)?;
    held.library.save(tx)?;
    Ok((changes.len() + left.len()) as u64)
}

/// The sources of an instance that list posts of these items, each with those posts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn listing_sources(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    items: &[OutboxItem],
) -> Result<HashMap<SourceId, HashSet<LocalId>>, StoreError> {
    let ids = Column::i64(items.iter().map(|item| sql(item.post)));
    let found = tx.query(
        "select source_id, post_id from entry where instance_id = $1 and id {in $2} and id = post_id
         union all
         select source_id, post_id from entry where instance_id = $1 and post_id {in $2} and id <> post_id",
        &[&sql(instance), &ids],
        |row| Ok((from_sql(row.i64("source_id")?)?, from_sql(row.i64("post_id")?)?)),
    )?;
    let mut listed: HashMap<SourceId, HashSet<LocalId>> = HashMap::new();
    for (source, post) in found {
        listed.entry(source).or_default().insert(post);
    }
    Ok(listed)
}
