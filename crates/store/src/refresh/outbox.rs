//! The outbox: changes of posts that the libraries of sources are still to be notified of.
//!
//! A refresh changes posts of an instance, and each source that lists one has a library with USNs
//! of its own, below a root of its own. So the save only adds the post to the outbox, in its own
//! transaction, and a relay notifies each source in a transaction below the source's root. After a
//! crash in between, the post is still in the outbox.

use std::collections::{HashMap, HashSet};

use driftline_core::post::Visibility;
use driftline_db::{Column, Tx};

use crate::{
    clock,
    error::StoreError,
    ids::{InstanceId, LocalId, SourceId, from_sql, sql},
    mirror::{entry, machine::LockedSource},
};

/// A changed post that libraries are to be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxItem {
    /// The post.
    pub post: LocalId,
    /// Whether its counts changed, and not only its content.
    pub counts: bool,
    /// When it was last added, Unix ms.
    pub since_ms: i64,
}

/// The outbox of an instance: at most `limit` items that were added by `until_ms`, in order of their
/// posts' IDs, from the first one above `above` on.
pub fn outbox(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    until_ms: i64,
    above: Option<LocalId>,
    limit: u32,
) -> Result<Vec<OutboxItem>, StoreError> {
    let found = tx.query(
        "select post_id, counts, since_ms from outbox
         where instance_id = $1 and since_ms <= $2 and post_id > $3
         order by post_id limit $4",
        &[
            &sql(instance),
            &until_ms,
            &above.map_or(i64::MIN, sql),
            &i64::from(limit),
        ],
        |row| {
            Ok(OutboxItem {
                post: from_sql(row.i64(0)?)?,
                counts: row.bool(1)?,
                since_ms: row.i64(2)?,
            })
        },
    )?;
    Ok(found)
}

/// The outbox's items of these posts.
pub fn outbox_of(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
) -> Result<Vec<OutboxItem>, StoreError> {
    let found = tx.query(
        "select post_id, counts, since_ms from outbox
         where instance_id = $1 and post_id {in $2} order by post_id",
        &[
            &sql(instance),
            &Column::i64(posts.iter().map(|post| sql(*post))),
        ],
        |row| {
            Ok(OutboxItem {
                post: from_sql(row.i64(0)?)?,
                counts: row.bool(1)?,
                since_ms: row.i64(2)?,
            })
        },
    )?;
    Ok(found)
}

/// Notifies a source's library: each of its entries of these posts that differs from the post, or
/// whose counts have changed, takes the next USN. An entry whose post has returned moves to a new
/// ID, above all that readers have seen. To be written below [`crate::mirror::source::root`] of the source.
/// Returns how many entries took a USN.
pub fn notify(tx: &mut Tx<'_>, source: SourceId, items: &[OutboxItem]) -> Result<u64, StoreError> {
    let mut held = LockedSource::load(tx, source, None)?;
    let ids: Vec<i64> = items.iter().map(|item| sql(item.post)).collect();
    let entries = entry::of_posts(tx, held.id, &ids)?;
    if entries.is_empty() {
        return Ok(0);
    }
    let newest_ms = items.iter().map(|item| item.since_ms).max();
    let now_ms = newest_ms.unwrap_or_default();
    // Entries that move to a new ID take it while the clock is held, as they would in a commit of
    // the source's own.
    if entries.iter().any(|entry| entry.gone || entry.stale) {
        clock::take(tx, now_ms, 0)?;
    }
    let now = posts_now(tx, &ids)?;
    let recounted: HashSet<i64> = items
        .iter()
        .filter(|item| item.counts)
        .map(|item| sql(item.post))
        .collect();
    let mut changes = Vec::new();
    for entry in entries {
        let Some(post) = now.get(&entry.post_id) else {
            continue;
        };
        let moves = !post.gone && (entry.gone || entry.returns != post.returns);
        let differs = entry.content_hash != post.content_hash || entry.gone != post.gone;
        let has_counts = recounted.contains(&entry.post_id) && !post.gone;
        if moves || differs || has_counts {
            let moved = if moves {
                Some(entry::Moved {
                    id: clock::take(tx, now_ms, 1)?,
                    post_id: entry.post_id,
                    returns: post.returns,
                })
            } else {
                None
            };
            changes.push(entry::Change {
                id: entry.id,
                usn: held.next_usn(),
                content_hash: post.content_hash,
                gone: post.gone,
                listed: !post.gone && post.is_public,
                moved,
            });
        }
    }
    entry::change(tx, held.id, &changes)?;
    held.save_usn(tx)?;
    Ok(changes.len() as u64)
}

struct PostNow {
    content_hash: i64,
    gone: bool,
    is_public: bool,
    returns: i64,
}

fn posts_now(tx: &mut Tx<'_>, ids: &[i64]) -> Result<HashMap<i64, PostNow>, StoreError> {
    let posts = tx.query(
        "select id, content_hash, deleted_at_ms is not null, visibility, returns from post
         where id {in $1}",
        &[&Column::i64(ids.iter().copied())],
        |row| {
            let post = PostNow {
                content_hash: row.i64(1)?,
                gone: row.bool(2)?,
                is_public: Visibility::named_or_narrowest(row.str(3)?) == Visibility::Public,
                returns: row.i64(4)?,
            };
            Ok((row.i64(0)?, post))
        },
    )?;
    Ok(posts.into_iter().collect())
}

/// Which of these posts a source lists, so that it is to be notified of them.
pub fn listed_in(
    tx: &mut Tx<'_>,
    source: SourceId,
    items: &[OutboxItem],
) -> Result<HashSet<LocalId>, StoreError> {
    let ids: Vec<i64> = items.iter().map(|item| sql(item.post)).collect();
    let entries = entry::of_posts(tx, sql(source), &ids)?;
    entries
        .iter()
        .map(|entry| Ok(from_sql(entry.post_id)?))
        .collect()
}

/// Removes items that every source was notified of; a post that was added again since stays.
pub fn forget_relayed(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    items: &[OutboxItem],
) -> Result<(), StoreError> {
    tx.execute_many(
        "delete from outbox where instance_id = $1 and (post_id, since_ms) in
             (select post_id, since_ms from {rows as r(post_id, since_ms)})",
        &[&sql(instance)],
        &[
            Column::i64(items.iter().map(|item| sql(item.post))),
            Column::i64(items.iter().map(|item| item.since_ms)),
        ],
    )?;
    Ok(())
}

/// Adds posts, each with whether its counts changed. A post that is in the outbox already is renewed.
pub(crate) fn add_to_outbox(
    tx: &mut Tx<'_>,
    instance_id: i64,
    now_ms: i64,
    posts: &[(i64, bool)],
) -> Result<(), StoreError> {
    if posts.is_empty() {
        return Ok(());
    }
    tx.execute_many_later(
        "insert into outbox (instance_id, post_id, since_ms, counts)
         select $1, r.post_id, $2, r.counts from {rows as r(post_id, counts)} where true
         on conflict (instance_id, post_id) do update
         set since_ms = excluded.since_ms, counts = (outbox.counts or excluded.counts)",
        &[&instance_id, &now_ms],
        &[
            Column::i64(posts.iter().map(|(post_id, _)| *post_id)),
            Column::bool(posts.iter().map(|(_, counts)| *counts)),
        ],
    )?;
    Ok(())
}
