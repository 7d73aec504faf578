//! What the bare drivers share: the rows that they read, and what they write.

use std::hash::{DefaultHasher, Hasher};

use driftline_core::post::Post;

use super::made::{self, NOW_MS};
use crate::failure::Failure;

/// A row of the schedule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) bucket: i64,
    pub(super) due_at_ms: i64,
    pub(super) post_id: i64,
}

/// A claimed post.
#[derive(Debug, Clone)]
pub(super) struct Due {
    pub(super) slot: Slot,
    pub(super) upstream_id: String,
}

/// A post's freshness, as far as the next one depends on it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh {
    pub(super) refreshed_at_ms: i64,
    pub(super) refreshes: i64,
    pub(super) state_hash: Option<i64>,
    pub(super) counts: [Option<i64>; 5],
    pub(super) notified_at_ms: i64,
    pub(super) notified_total: i64,
}

/// What is known of a post.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) content_hash: i64,
    pub(super) listed: bool,
}

/// What a look-up leads to.
pub(super) struct Change<'p> {
    pub(super) slot: Slot,
    pub(super) post: &'p Post,
    pub(super) known: Known,
    pub(super) before: Fresh,
    pub(super) counts: [Option<i64>; 5],
    pub(super) is_changed: bool,
    pub(super) is_notified: bool,
    pub(super) state_hash: Option<i64>,
}

impl<'p> Change<'p> {
    /// A post has changed if its counts have, and libraries are notified if they moved by a tenth.
    pub(super) fn of(due: &Due, before: Fresh, known: Known, post: &'p Post) -> Self {
        let counts = counts(post);
        let is_changed = counts != before.counts;
        let is_notified = total(counts).abs_diff(before.notified_total) * 10
            >= before.notified_total.unsigned_abs()
            && is_changed;
        let state_hash = if is_changed {
            let mut hasher = DefaultHasher::new();
            hasher.write_i64(total(counts));
            Some(hasher.finish().cast_signed())
        } else {
            before.state_hash
        };
        Self {
            slot: Slot {
                due_at_ms: NOW_MS + EVERY_MS,
                ..due.slot
            },
            post,
            known,
            counts,
            is_changed,
            is_notified,
            state_hash,
            before,
        }
    }

    pub(super) fn outcome(&self) -> &'static str {
        if self.is_changed {
            "updated"
        } else {
            "unchanged"
        }
    }

    pub(super) fn before_total(&self) -> i64 {
        total(self.before.counts)
    }

    /// When libraries were last notified, and of which total.
    pub(super) fn notified(&self) -> (i64, i64) {
        if self.is_notified {
            (NOW_MS, total(self.counts))
        } else {
            (self.before.notified_at_ms, self.before.notified_total)
        }
    }
}

fn counts(post: &Post) -> [Option<i64>; 5] {
    let counts = post.counts;
    [
        counts.replies,
        counts.boosts,
        counts.favourites,
        counts.quotes,
        counts.views,
    ]
}

fn total(counts: [Option<i64>; 5]) -> i64 {
    counts.iter().take(4).flatten().sum()
}

/// The answers to a batch.
pub(super) fn answers(due: &[Due]) -> Result<Vec<Post>, Failure> {
    due.iter()
        .map(|due| {
            let number = made::number_of(&due.upstream_id)?;
            made::answer(number, &due.upstream_id)
        })
        .collect()
}

/// The buckets of the one instance, from a shard on.
pub(super) fn buckets(shard: i64) -> impl Iterator<Item = i64> {
    (0..SHARDS).map(move |step| INSTANCE * SHARDS + (shard + step) % SHARDS)
}

/// The only instance of a filled store.
pub(super) const INSTANCE: i64 = 1;
const SHARDS: i64 = 8;
const EVERY_MS: i64 = 2 * 3_600_000;
