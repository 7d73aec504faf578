//! Notifies the libraries of sources of posts that refreshes have changed.

use std::collections::{HashMap, HashSet};

use driftline_core::post::Visibility;
use driftline_db::{Column, Tx};

use super::{entry, machine::LockedSource};
use crate::{
    error::StoreError,
    id_types::{LocalId, SourceId, from_sql, sql},
    local_ids,
    refresh::OutboxItem,
};

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
        local_ids::take(tx, now_ms, 0)?;
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
                    id: local_ids::take(tx, now_ms, 1)?,
                    post_id: entry.post_id,
                    returns: post.returns,
                })
            } else {
                None
            };
            changes.push(entry::Change {
                id: entry.id,
                usn: held.library.next_usn(),
                content_hash: post.content_hash,
                gone: post.gone,
                listed: !post.gone && post.is_public,
                moved,
            });
        }
    }
    entry::change(tx, held.id, &changes)?;
    held.save_usns(tx)?;
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
        "select id, content_hash, deleted_at_ms is not null as gone, visibility, returns from post
         where id {in $1}",
        &[&Column::i64(ids.iter().copied())],
        |row| {
            let post = PostNow {
                content_hash: row.i64("content_hash")?,
                gone: row.bool("gone")?,
                is_public: Visibility::named_or_narrowest(row.str("visibility")?)
                    == Visibility::Public,
                returns: row.i64("returns")?,
            };
            Ok((row.i64("id")?, post))
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
