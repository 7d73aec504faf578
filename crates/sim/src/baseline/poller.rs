//! A poller that trusts `since_id`.

use driftline_core::{
    answer::{Failure, PageRequest},
    timeline::{IdScheme, since_id},
    upstream_id::{Key, UpstreamId},
};

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
/// It reads numeric IDs only; others never move its cursor.
#[derive(Debug, Clone, Default)]
pub struct Poller {
    /// The overlap of seed 000's clamp, on Mastodon's layout; `None` polls from the newest ID seen.
    k_ms: Option<i64>,
    walk_end: WalkEnd,
    /// The newest ID of the polls that succeeded.
    latest: Option<Key>,
    /// When the last poll that succeeded sent its first request.
    retrieved_at_ms: i64,
    poll: Option<Poll>,
    requests: u64,
    fetched: u64,
}

#[derive(Debug, Clone)]
struct Poll {
    since: Option<UpstreamId>,
    newest: Option<Key>,
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
        let since = self.latest.as_ref().map(|latest| {
            let clamp = |k_ms| since_id(&IDS, latest, self.retrieved_at_ms, k_ms);
            IDS.id(self.k_ms.and_then(clamp).as_ref().unwrap_or(latest))
        });
        self.poll = Some(Poll {
            since: since.clone(),
            newest: None,
            sent_at_ms: now_ms,
        });
        self.page(since, None)
    }

    fn page(&mut self, since_id: Option<UpstreamId>, max_id: Option<UpstreamId>) -> PageRequest {
        self.requests += 1;
        PageRequest {
            since_id,
            max_id,
            limit: LIMIT,
            ..PageRequest::default()
        }
    }

    /// Takes a page's IDs as the answer ordered them; answers the next
    /// request, or nothing when the poll is over.
    pub fn take(&mut self, ids: &[UpstreamId]) -> Option<PageRequest> {
        self.fetched += ids.len() as u64;
        let mut poll = self.poll.take()?;
        let keys = || ids.iter().filter_map(|id| IDS.key(id).ok());
        poll.newest = poll.newest.max(keys().max());
        let goes_on = match self.walk_end {
            WalkEnd::FirstPage => false,
            WalkEnd::ShortPage => ids.len() >= usize::from(LIMIT),
            WalkEnd::EmptyPage => !ids.is_empty(),
        };
        if let (true, Some(since), Some(oldest)) = (goes_on, poll.since.clone(), keys().min()) {
            self.poll = Some(poll);
            return Some(self.page(Some(since), Some(IDS.id(&oldest))));
        }
        // A timeline that was empty at first is read from its beginning.
        let beginning = || IDS.key(&"0".into()).ok();
        self.latest = self.latest.take().max(poll.newest).or_else(beginning);
        self.retrieved_at_ms = poll.sent_at_ms;
        None
    }

    /// Gives the current poll up, whose cursor does not move. Answers until when a throttle asks to
    /// wait, Unix ms; 0 if none does.
    pub fn fail(&mut self, failure: &Failure) -> i64 {
        self.poll = None;
        let throttle = failure.throttle.filter(|throttle| throttle.remaining == 0);
        throttle.map_or(0, |throttle| throttle.reset_at_ms)
    }

    /// Requests sent.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Posts on the pages that came.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }
}

const IDS: IdScheme = IdScheme::MASTODON;
const LIMIT: u16 = 40;

#[cfg(test)]
mod tests {
    use driftline_core::answer::FailureKind;

    use super::*;

    #[test]
    fn a_full_page_is_followed_and_a_failed_poll_moves_no_cursor() {
        let mut poller = Poller::naive();
        poller.begin(0);
        assert_eq!(poller.take(&[]), None);
        assert_eq!(poller.begin(1).since_id, Some("0".into()));
        let ids = |numbers: std::ops::Range<u64>| -> Vec<UpstreamId> {
            let ids = numbers.rev().map(|number| number.to_string());
            ids.map(UpstreamId::new).collect()
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
        poller.fail(&Failure::new(FailureKind::TimedOut, "nothing came"));
        assert_eq!(poller.begin(2).since_id, Some("40".into()));
        poller.take(&ids(60..100));
        assert_eq!(poller.take(&ids(41..60)), None);
        assert_eq!(poller.begin(3).since_id, Some("99".into()));
        assert_eq!((poller.requests(), poller.fetched()), (6, 139));
    }
}
