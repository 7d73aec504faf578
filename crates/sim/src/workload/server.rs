//! A server that shows the posts of a workload.

use std::collections::VecDeque;

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, PageRequest},
    rng::Rng,
    upstream_id::UpstreamId,
};

use super::tail::Workload;
use crate::{
    quota::{Endpoint, RequestKind},
    throttles::Throttles,
    world::newest_first,
};

/// A workload's posts and its throttle.
///
/// Posts are made as time passes, with a time in their ID and a time of becoming visible, and
/// dropped once no poller reads them, since a run has millions. [`crate::World`] keeps all posts for
/// good, with all that can happen to them, in seven times the memory.
pub(super) struct WorkloadServer {
    workload: Workload,
    throttles: Throttles,
    rng: Rng,
    /// The time of the next post, in ms after the start.
    next_ms: f64,
    /// The time up to which posts were made, in ms after the start.
    made_ms: i64,
    ends_ms: i64,
    pub(super) proven_ms: Option<i64>,
    /// Sorted by ID.
    pub(super) posts: VecDeque<WorkloadPost>,
    /// The number of dropped posts.
    pub(super) gone: u64,
    /// The dropped posts that were never stored.
    missed: Vec<WorkloadPost>,
    sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WorkloadPost {
    /// In Mastodon's layout: ms since the epoch above 16 bits.
    pub(super) id: u64,
    pub(super) visible_at_ms: i64,
    pub(super) is_stored: bool,
}

impl WorkloadPost {
    pub(super) fn id_ms(&self) -> i64 {
        (self.id >> 16) as i64
    }

    pub(super) fn upstream_id(&self) -> UpstreamId {
        UpstreamId::new(self.id.to_string())
    }
}

impl WorkloadServer {
    pub(super) fn new(workload: Workload, seed: u64) -> Self {
        Self {
            throttles: Throttles::new(workload.throttle.as_slice(), START_MS),
            workload,
            rng: Rng::new(seed),
            next_ms: 0.0,
            made_ms: 0,
            ends_ms: i64::MAX,
            proven_ms: None,
            posts: VecDeque::new(),
            gone: 0,
            missed: Vec::new(),
            sequence: 0,
        }
    }

    /// The time of the first poll in Unix ms.
    pub(super) fn first_poll_ms(&self) -> i64 {
        START_MS + self.workload.history_ms
    }

    /// The indexes of a page's posts, the newest first, and the answer's headers.
    ///
    /// # Errors
    /// [`FailureKind::Throttled`] if the throttle rejects the request.
    pub(super) fn page(
        &mut self,
        request: &PageRequest,
        sent_at_ms: i64,
    ) -> Result<(Vec<usize>, AnswerHeaders), Failure> {
        let bounds = [&request.since_id, &request.max_id, &request.min_id];
        let number = |id: &UpstreamId| id.as_str().parse().ok();
        let [since_id, max_id, min_id] = bounds.map(|id| id.as_ref().and_then(number));
        let asked = RequestKind {
            endpoint: Endpoint::Home,
            paged: bounds.iter().any(|bound| bound.is_some()),
        };
        let ruling = self.throttles.count(sent_at_ms, "", asked);
        if ruling.refused {
            return Err(Failure {
                throttle: ruling.tightest,
                ..Failure::new(FailureKind::Throttled, "the window is used up")
            });
        }
        self.make_until(sent_at_ms);
        let above = self.first_above(since_id.or(min_id).unwrap_or(0));
        let under = max_id.map_or(self.posts.len(), |max_id| self.first_at(max_id));
        let is_visible = |index: &usize| self.posts[*index].visible_at_ms <= sent_at_ms;
        let visible = (above..under.max(above)).filter(is_visible);
        let headers = AnswerHeaders {
            throttle: ruling.tightest,
            ..headers(sent_at_ms)
        };
        Ok((newest_first(visible, min_id.is_some(), PAGE), headers))
    }

    /// Makes the posts that are written up to `now_ms`, in Unix ms.
    fn make_until(&mut self, now_ms: i64) {
        let until_ms = (now_ms - START_MS).min(self.ends_ms);
        if until_ms <= self.made_ms {
            return;
        }
        self.made_ms = until_ms;
        while self.next_ms < until_ms as f64 {
            let at_ms = self.next_ms;
            let (step_ms, late_ms) = self.workload.draw(&mut self.rng, at_ms, self.proven_ms);
            self.next_ms += step_ms;
            self.sequence = (self.sequence + 1) & 0xffff;
            let id_ms = START_MS + at_ms as i64;
            let id = ((id_ms as u64) << 16) | self.sequence;
            // A sequence that begins again may place a post after another one of its ms.
            let above = self.posts.iter().rev().take_while(|other| other.id > id);
            let index = self.posts.len() - above.count();
            let post = WorkloadPost {
                id,
                visible_at_ms: id_ms + late_ms as i64,
                is_stored: false,
            };
            self.posts.insert(index, post);
        }
    }

    /// Ends the posts at `at_ms`, in Unix ms.
    pub(super) fn end(&mut self, at_ms: i64) {
        self.ends_ms = at_ms - START_MS;
    }

    /// Drops posts older than `before_ms`, in Unix ms.
    pub(super) fn drop_older(&mut self, before_ms: i64) {
        let is_old = |post: &mut WorkloadPost| post.id_ms() < before_ms;
        while let Some(post) = self.posts.pop_front_if(is_old) {
            self.gone += 1;
            if !post.is_stored {
                self.missed.push(post);
            }
        }
    }

    /// The posts that are not stored.
    pub(super) fn missed(&self) -> impl Iterator<Item = &WorkloadPost> {
        let unread = self.posts.iter().filter(|post| !post.is_stored);
        self.missed.iter().chain(unread)
    }

    pub(super) fn first_above(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id <= id)
    }

    pub(super) fn first_at(&self, id: u64) -> usize {
        self.posts.partition_point(|post| post.id < id)
    }
}

/// The headers of an answer without a throttle.
pub(super) fn headers(sent_at_ms: i64) -> AnswerHeaders {
    AnswerHeaders {
        sent_at_ms,
        received_at_ms: sent_at_ms + ROUND_TRIP_MS,
        round_trip_ms: ROUND_TRIP_MS,
        date_ms: Some(sent_at_ms / 1000 * 1000),
        ..AnswerHeaders::default()
    }
}

/// The number of posts on a page.
pub(super) const PAGE: usize = 40;
/// The time from a request to its answer, in ms.
pub(super) const ROUND_TRIP_MS: i64 = 60;
/// October 2025.
pub(super) const START_MS: i64 = 1_760_000_000_000;
