//! The world's server, which shows posts in pages, with a throttle.

use super::world::{Post, World};
use crate::{
    answer::{AnswerHeaders, Failure, FailureKind, PageRequest, Throttle},
    upstream_id::UpstreamId,
};

impl World {
    /// The indexes of a page's posts in the world, the newest first, and the answer's headers.
    /// Fails if the throttle rejects the request.
    pub(super) fn page(
        &mut self,
        request: &PageRequest,
        sent_at_ms: i64,
    ) -> Result<(Vec<usize>, AnswerHeaders), Failure> {
        let bounds = [&request.since_id, &request.max_id, &request.min_id];
        let is_paged = bounds.iter().any(|bound| bound.is_some());
        let number = |id: &UpstreamId| id.as_str().parse().ok();
        let [since_id, max_id, min_id] = bounds.map(|id| id.as_ref().and_then(number));
        let headers = AnswerHeaders {
            throttle: self.throttle(is_paged, sent_at_ms)?,
            ..headers(sent_at_ms)
        };
        self.make_until(sent_at_ms);
        let above = self.first_above(since_id.or(min_id).unwrap_or(0));
        let under = max_id.map_or(self.posts.len(), |max_id| self.first_at(max_id));
        let is_visible = |post: &Post| post.visible_at_ms <= sent_at_ms;
        let shown = |index: &usize| is_visible(&self.posts[*index]);
        let range = (above..under.max(above)).filter(shown);
        let mut page: Vec<usize> = match min_id {
            Some(_) => range.take(PAGE).collect(),
            None => range.rev().take(PAGE).collect(),
        };
        if min_id.is_some() {
            page.reverse();
        }
        Ok((page, headers))
    }

    /// Counts a request, if the throttle applies to it.
    fn throttle(&mut self, is_paged: bool, now_ms: i64) -> Result<Option<Throttle>, Failure> {
        let Some((limit, length_ms)) = self.workload.throttle.filter(|_| is_paged) else {
            return Ok(None);
        };
        let window = self.window.filter(|window| window.reset_at_ms > now_ms);
        let mut window = window.unwrap_or(Throttle {
            limit,
            remaining: limit,
            reset_at_ms: (now_ms / length_ms + 1) * length_ms,
            error_ms: 0,
        });
        let is_spent = window.remaining == 0;
        window.remaining = window.remaining.saturating_sub(1);
        self.window = Some(window);
        if is_spent {
            return Err(Failure {
                throttle: Some(window),
                ..Failure::new(FailureKind::Throttled, "the window is used up")
            });
        }
        Ok(Some(window))
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
