//! A poller that trusts `since_id`.

use std::collections::HashSet;

use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};

/// When a poll stops paging back by `max_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WalkEnd {
    /// After its first page.
    FirstPage,
    /// At a page that is not full, as most pollers do. Where the server
    /// filters pages after slicing, that loses posts for good.
    #[default]
    ShortPage,
    /// At an empty page: safer, for one more request in each poll.
    EmptyPage,
}

/// A baseline poller as a pure machine: [`Poller::begin`] a poll, hand each page
/// to [`Poller::take`], send what it answers, until it answers nothing.
///
/// It reads numeric IDs only; others are stored but never move its cursor.
#[derive(Debug, Clone, Default)]
pub struct Poller {
    /// The overlap of seed 000's clamp, on Mastodon's layout (time above 16 bits); `None` polls
    /// from the newest ID seen.
    k_ms: Option<i64>,
    walk_end: WalkEnd,
    /// The newest ID of the polls that succeeded.
    latest: Option<u64>,
    /// When the last poll that succeeded sent its first request.
    retrieved_at_ms: i64,
    poll: Option<Poll>,
    stored: HashSet<UpstreamId>,
    requests: u64,
    fetched: u64,
    redundant: u64,
}

#[derive(Debug, Clone)]
struct Poll {
    since: Option<u64>,
    newest: Option<u64>,
    sent_at_ms: i64,
}

impl Poller {
    /// Polls from the newest ID seen, paging back by 40 posts to the first short page.
    pub fn naive() -> Self {
        Self::default()
    }

    /// Polls with the seed's clamp; `k_ms`, how long after its ID's time a post is allowed to become
    /// visible, is 1000 in the seed.
    pub fn clamp(k_ms: i64) -> Self {
        Self {
            k_ms: Some(k_ms),
            ..Self::default()
        }
    }

    /// Pages back to another end.
    #[must_use]
    pub fn walking_to(mut self, walk_end: WalkEnd) -> Self {
        self.walk_end = walk_end;
        self
    }

    /// Begins a poll at a time by the local clock, Unix ms. The very first
    /// poll takes one page and does not walk into the past.
    pub fn begin(&mut self, now_ms: i64) -> PageRequest {
        let clamped = |latest, k_ms| clamped_since(latest, self.retrieved_at_ms, k_ms);
        let since = self
            .latest
            .map(|latest| self.k_ms.map_or(latest, |k_ms| clamped(latest, k_ms)));
        self.poll = Some(Poll {
            since,
            newest: None,
            sent_at_ms: now_ms,
        });
        self.requests += 1;
        PageRequest {
            since_id: since.map(upstream_id),
            limit: LIMIT,
            ..PageRequest::default()
        }
    }

    /// Takes a page's IDs as the answer ordered them; answers the next
    /// request, or nothing when the poll is over.
    pub fn take(&mut self, ids: &[UpstreamId]) -> Option<PageRequest> {
        for id in ids {
            self.fetched += 1;
            self.redundant += u64::from(!self.stored.insert(id.clone()));
        }
        let poll = self.poll.as_mut()?;
        let numbers = || ids.iter().filter_map(|id| id.as_str().parse().ok());
        poll.newest = poll.newest.max(numbers().max());
        let oldest: Option<u64> = numbers().min();
        let goes_on = match self.walk_end {
            WalkEnd::FirstPage => false,
            WalkEnd::ShortPage => ids.len() >= usize::from(LIMIT),
            WalkEnd::EmptyPage => !ids.is_empty(),
        };
        if let (true, Some(since), Some(oldest)) = (goes_on, poll.since, oldest) {
            self.requests += 1;
            return Some(PageRequest {
                since_id: Some(upstream_id(since)),
                max_id: Some(upstream_id(oldest)),
                limit: LIMIT,
                ..PageRequest::default()
            });
        }
        // A timeline that was empty at first is read from its beginning.
        self.latest = self.latest.max(poll.newest).or(Some(0));
        self.retrieved_at_ms = poll.sent_at_ms;
        self.poll = None;
        None
    }

    /// Gives the current poll up; what it stored stays, its cursor does not
    /// move.
    pub fn fail(&mut self) {
        self.poll = None;
    }

    /// The IDs of every post that was stored.
    pub fn stored(&self) -> &HashSet<UpstreamId> {
        &self.stored
    }

    /// Requests sent.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Posts on the pages that came.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Those of them that were stored already.
    pub fn redundant(&self) -> u64 {
        self.redundant
    }
}

/// The formulas of seed 000:
/// `clamp(time2sf(retrieved_at - k) - 1, lower, latest)`, where `lower` is
/// the ID of `k` before the latest one's time.
fn clamped_since(latest: u64, retrieved_at_ms: i64, k_ms: i64) -> u64 {
    let time2sf = |unix_ms: i64| u64::try_from(unix_ms).unwrap_or(0) << 16;
    let timestamp = i64::try_from(latest >> 16).unwrap_or(i64::MAX);
    let lower = if timestamp <= k_ms {
        latest
    } else {
        time2sf(timestamp - k_ms).saturating_sub(1)
    };
    let bound = time2sf(retrieved_at_ms.saturating_sub(k_ms)).saturating_sub(1);
    bound.min(latest).max(lower)
}

const LIMIT: u16 = 40;

fn upstream_id(number: u64) -> UpstreamId {
    UpstreamId::new(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clamp_is_the_seeds() {
        let latest = (100_000 << 16) | 5;
        // Read long after the latest post: nothing older can come, so its ID.
        assert_eq!(clamped_since(latest, 200_000, 1_000), latest);
        // Read right then: a second before the reading.
        assert_eq!(clamped_since(latest, 100_500, 1_000), (99_500 << 16) - 1);
        // The local clock is slow: never below a second before the latest.
        assert_eq!(clamped_since(latest, 7, 1_000), (99_000 << 16) - 1);
        // The seed's edge case of a very old latest.
        assert_eq!(clamped_since(500 << 16, 7, 1_000), 500 << 16);
    }

    #[test]
    fn a_full_page_is_followed_and_a_failed_poll_moves_no_cursor() {
        let mut poller = Poller::naive();
        poller.begin(0);
        assert_eq!(poller.take(&[]), None);
        assert_eq!(poller.begin(1).since_id, Some("0".into()));
        let ids = |numbers: std::ops::Range<u64>| -> Vec<UpstreamId> {
            numbers.rev().map(upstream_id).collect()
        };
        let mut poller = Poller::naive();
        assert_eq!(poller.begin(0).since_id, None);
        assert_eq!(poller.take(&ids(1..41)), None);
        assert_eq!(poller.begin(1).since_id, Some("40".into()));
        let next = poller.take(&ids(60..100)).expect("a next page");
        assert_eq!(
            (next.since_id, next.max_id),
            (Some("40".into()), Some("60".into()))
        );
        poller.fail();
        assert_eq!(poller.begin(2).since_id, Some("40".into()));
        poller.take(&ids(60..100));
        assert_eq!(poller.take(&ids(41..60)), None);
        assert_eq!(poller.begin(3).since_id, Some("99".into()));
        assert_eq!(poller.stored().len(), 99);
        assert_eq!(
            (poller.requests(), poller.fetched(), poller.redundant()),
            (6, 139, 40)
        );
    }
}
