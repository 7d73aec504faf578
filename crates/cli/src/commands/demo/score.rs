//! What a poller saw, and how that compares with the truth.

use std::collections::HashMap;

use driftline_core::upstream_id::UpstreamId;
use driftline_sim::{TruePost, Truth};
use serde::Serialize;

/// What a poller has seen so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// When each post was stored, Unix ms.
    pub(super) stored_at_ms: HashMap<UpstreamId, i64>,
    /// Requests sent.
    pub(super) requests: u64,
    /// Posts fetched that were stored already.
    pub(super) redundant: u64,
    /// A remark on its progress, if there is one.
    pub(super) remark: Option<String>,
}

impl Seen {
    /// One line of progress.
    pub(super) fn line(&self) -> String {
        let remark = self.remark.as_ref();
        format!(
            "{:>5} stored, {:>4} requests, {:>5} fetched again{}",
            self.stored_at_ms.len(),
            self.requests,
            self.redundant,
            remark.map_or_else(String::new, |remark| format!(", {remark}"))
        )
    }
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
    pub(super) fn new(published: &Published, seen: &Seen) -> Self {
        let mut delays_ms: Vec<i64> = published
            .counted
            .iter()
            .filter_map(|post| Some(seen.stored_at_ms.get(&post.id)? - post.visible_at_ms))
            .collect();
        delays_ms.sort_unstable();
        let quantile = |percent: usize| {
            let index = (delays_ms.len() * percent).div_ceil(100).max(1) - 1;
            delays_ms.get(index).copied()
        };
        Self {
            stored: delays_ms.len(),
            missed: published.counted.len() - delays_ms.len(),
            requests: seen.requests,
            redundant: seen.redundant,
            delay_p50_ms: quantile(50),
            delay_p99_ms: quantile(99),
            short_lived_stored: published
                .short_lived
                .iter()
                .filter(|post| seen.stored_at_ms.contains_key(&post.id))
                .count(),
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
        let (counted, short_lived) = truth
            .posts
            .into_iter()
            .partition(|post| post.visible_for_ms.is_none_or(|ms| ms >= stay_ms));
        Self {
            counted,
            short_lived,
        }
    }

    /// The posts that count and were not stored.
    pub(super) fn missed_by(&self, seen: &Seen) -> impl Iterator<Item = &TruePost> {
        self.counted
            .iter()
            .filter(|post| !seen.stored_at_ms.contains_key(&post.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(id: &str, visible_at_ms: i64, visible_for_ms: Option<i64>) -> TruePost {
        TruePost {
            id: id.into(),
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
        let published = Published::new(
            Truth {
                posts: vec![
                    post("1", 100, None),
                    post("2", 200, Some(999)),
                    post("3", 300, Some(1_000)),
                    post("4", 400, None),
                    post("5", 500, Some(20)),
                ],
            },
            1_000,
        );
        let seen = Seen {
            stored_at_ms: [("1", 150), ("4", 500), ("5", 510)]
                .map(|(id, at)| (id.into(), at))
                .into(),
            requests: 7,
            redundant: 5,
            remark: None,
        };
        assert_eq!(
            Score::new(&published, &seen),
            Score {
                stored: 2,
                missed: 1,
                requests: 7,
                redundant: 5,
                delay_p50_ms: Some(50),
                delay_p99_ms: Some(100),
                short_lived_stored: 1,
            }
        );
        let missed: Vec<&str> = published
            .missed_by(&seen)
            .map(|post| post.id.as_str())
            .collect();
        assert_eq!(missed, ["3"]);
    }
}
