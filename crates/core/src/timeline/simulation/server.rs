//! A server that shows a world's posts in pages, under a throttle.

use super::world::{Post, World};
use crate::{
    answer::{AnswerHeaders, Failure, FailureKind, Throttle},
    timeline::Request,
    upstream_id::UpstreamId,
};

/// The server's side of a request.
pub(super) struct Server {
    pub(super) world: World,
    window: Option<Throttle>,
    rule: Option<(u32, i64)>,
}

/// Bounds of a page, as numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) since_id: Option<u64>,
    pub(super) max_id: Option<u64>,
    pub(super) min_id: Option<u64>,
}

impl Bounds {
    pub(super) fn of(request: &Request) -> Self {
        let number = |id: &Option<UpstreamId>| id.as_ref().and_then(|id| id.as_str().parse().ok());
        Self {
            since_id: number(&request.page.since_id),
            max_id: number(&request.page.max_id),
            min_id: number(&request.page.min_id),
        }
    }
}

impl Server {
    pub(super) fn new(world: World, rule: Option<(u32, i64)>) -> Self {
        Self {
            world,
            window: None,
            rule,
        }
    }

    /// The indexes of a page's posts in the world, newest first.
    pub(super) fn page(&mut self, bounds: Bounds, now_ms: i64) -> Vec<usize> {
        self.world.make_until(now_ms);
        let visible = |post: &Post| post.visible_at_ms <= now_ms;
        let world = &self.world;
        let above = world.first_above(bounds.since_id.or(bounds.min_id).unwrap_or(0));
        let under = bounds
            .max_id
            .map_or(world.len(), |max_id| world.first_at(max_id));
        let range = above..under.max(above);
        let shown = |index: &usize| visible(world.get(*index));
        if bounds.min_id.is_some() {
            let mut page: Vec<usize> = range.filter(shown).take(PAGE).collect();
            page.reverse();
            return page;
        }
        range.rev().filter(shown).take(PAGE).collect()
    }

    /// An answer's headers, or a refusal by the throttle.
    pub(super) fn answer(
        &mut self,
        sent_at_ms: i64,
        paged: bool,
    ) -> Result<AnswerHeaders, Failure> {
        let throttle = match (self.rule, paged) {
            (Some((limit, length_ms)), true) => {
                let window = self.window.filter(|window| window.reset_at_ms > sent_at_ms);
                let mut window = window.unwrap_or(Throttle {
                    limit,
                    remaining: limit,
                    reset_at_ms: (sent_at_ms / length_ms + 1) * length_ms,
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
                Some(window)
            }
            _ => None,
        };
        Ok(AnswerHeaders {
            sent_at_ms,
            received_at_ms: sent_at_ms + ROUND_TRIP_MS,
            round_trip_ms: ROUND_TRIP_MS,
            date_ms: Some(sent_at_ms / 1000 * 1000),
            throttle,
            body_bytes: 0,
        })
    }
}

/// Posts on a page.
pub(super) const PAGE: usize = 40;
/// From a request to its answer, ms.
pub(super) const ROUND_TRIP_MS: i64 = 60;
