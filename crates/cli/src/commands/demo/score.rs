//! What a poller saw, and how that compares with the truth.

use std::{collections::HashMap, fmt};

use driftline_core::upstream_id::UpstreamId;
use driftline_sim::{TruePost, Truth};
use serde::Serialize;

/// What a poller has done so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Posts stored.
    pub(super) stored: u64,
    /// Requests sent.
    pub(super) requests: u64,
    /// Posts fetched that were stored already.
    pub(super) redundant: u64,
    /// More words, if there are any.
    pub(super) remark: String,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stored, requests, redundant) = (self.stored, self.requests, self.redundant);
        write!(f, "{stored:>5} stored, {requests:>4} requests, ")?;
        write!(f, "{redundant:>5} fetched again{}", self.remark)
    }
}

/// What a poller has seen in the end.
#[derive(Debug, Clone, Default)]
pub(super) struct PollerRecord {
    /// When each post was stored, Unix ms.
    pub(super) stored_at_ms: HashMap<UpstreamId, i64>,
    /// What it has done for that.
    pub(super) progress: Progress,
}

/// A poller's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Score {
    /// Published posts that it stored.
    pub(super) stored: usize,
    /// Published posts that it did not.
    pub(super) missed: usize,
    /// Requests sent.
    pub(super) requests: u64,
    /// Posts fetched that were stored already.
    pub(super) redundant: u64,
    /// From being visible to being stored, ms: the median.
    pub(super) delay_p50_ms: Option<i64>,
    /// Likewise for 99 posts of 100.
    pub(super) delay_p99_ms: Option<i64>,
    /// Of the posts that do not count, those that it stored.
    pub(super) short_lived_stored: usize,
}

impl Score {
    /// Compares what was seen with what was published.
    pub(super) fn new(published: &Published, seen: &PollerRecord) -> Self {
        let delays_ms = |posts: &[TruePost]| {
            let stored =
                |post: &TruePost| Some(seen.stored_at_ms.get(&post.id)? - post.visible_at_ms);
            posts.iter().filter_map(stored).collect::<Vec<i64>>()
        };
        let mut counted_ms = delays_ms(&published.counted);
        counted_ms.sort_unstable();
        let quantile = |percent: usize| {
            let index = (counted_ms.len() * percent).div_ceil(100).max(1) - 1;
            counted_ms.get(index).copied()
        };
        Self {
            stored: counted_ms.len(),
            missed: published.counted.len() - counted_ms.len(),
            requests: seen.progress.requests,
            redundant: seen.progress.redundant,
            delay_p50_ms: quantile(50),
            delay_p99_ms: quantile(99),
            short_lived_stored: delays_ms(&published.short_lived).len(),
        }
    }
}

/// The posts that were published.
#[derive(Debug, Clone, Default)]
pub(super) struct Published {
    /// Those that count.
    pub(super) counted: Vec<TruePost>,
    /// Those that were deleted before Driftline's last rung reads posts of
    /// their age: whoever polls sees them by luck.
    pub(super) short_lived: Vec<TruePost>,
}

impl Published {
    /// Separates the posts that were deleted within `stay_ms` from the rest.
    pub(super) fn new(truth: Truth, stay_ms: i64) -> Self {
        let stays = |post: &TruePost| post.visible_for_ms.is_none_or(|ms| ms >= stay_ms);
        let (counted, short_lived) = truth.posts.into_iter().partition(stays);
        Self {
            counted,
            short_lived,
        }
    }

    /// The posts that count and were not stored.
    pub(super) fn missed_by(&self, seen: &PollerRecord) -> impl Iterator<Item = &TruePost> {
        let posts = self.counted.iter();
        posts.filter(|post| !seen.stored_at_ms.contains_key(&post.id))
    }

    /// The sum over the posts that count and are not deleted.
    pub(super) fn sum(&self, of: impl FnMut(&TruePost) -> Option<i64>) -> i64 {
        let posts = self.counted.iter();
        let left = posts.filter(|post| post.deleted_at_ms.is_none());
        left.filter_map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(id: &str, visible_at_ms: i64, visible_for_ms: Option<i64>) -> TruePost {
        TruePost {
            id: id.into(),
            edited_id: None,
            boost_of: None,
            is_unreadable: false,
            visible_at_ms,
            id_time_ms: visible_at_ms,
            deleted_at_ms: visible_for_ms.map(|ms| visible_at_ms + ms),
            edited_at_ms: None,
            visible_for_ms,
            content_hash: 0,
            edited_content: None,
        }
    }

    #[test]
    fn what_was_deleted_early_does_not_count_as_missed() {
        let posts = vec![
            post("1", 100, None),
            post("2", 200, Some(999)),
            post("3", 300, Some(1_000)),
            post("4", 400, None),
            post("5", 500, Some(20)),
        ];
        let published = Published::new(Truth { posts }, 1_000);
        let stored = [("1", 150), ("4", 500), ("5", 510)];
        let seen = PollerRecord {
            stored_at_ms: stored.map(|(id, at)| (id.into(), at)).into(),
            progress: Progress::default(),
        };
        let score = Score::new(&published, &seen);
        assert_eq!((score.stored, score.missed), (2, 1));
        assert_eq!(
            (score.delay_p50_ms, score.delay_p99_ms),
            (Some(50), Some(100))
        );
        assert_eq!(score.short_lived_stored, 1);
        let missed: Vec<_> = published
            .missed_by(&seen)
            .map(|post| post.id.as_str())
            .collect();
        assert_eq!(missed, ["3"]);
    }
}
