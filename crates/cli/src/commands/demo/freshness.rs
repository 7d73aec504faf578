//! How fresh the counts are that each poller holds.

use driftline_core::upstream_id::UpstreamId;
use driftline_runtime::now_ms;
use driftline_sim::http::SimServer;
use serde::Serialize;

use super::{
    mirrored::Outcome,
    score::{Published, Seen},
};

/// What the posts had got, and what each poller knows of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Freshness {
    /// Replies, boosts and favourites of all posts that were published, by now.
    pub(super) counts: i64,
    /// What the naive poller stored of them: the counts at first sight.
    pub(super) naive: i64,
    /// Likewise for the clamp.
    pub(super) clamp: i64,
    /// What Driftline has after its refreshes.
    pub(super) driftline: i64,
    /// Look-ups that the refreshes took.
    pub(super) requests: u64,
    /// Posts in one of them, on average.
    pub(super) posts_a_request: Option<f64>,
}

impl Freshness {
    /// Compares what is held with what the server shows now.
    pub(super) fn new(
        server: &SimServer,
        published: &Published,
        [naive, clamp]: &[Seen; 2],
        driftline: &Outcome,
    ) -> Self {
        let now = now_ms();
        let at =
            |ms: i64, id: &UpstreamId| server.counts_at(ms, id).map_or(0, |counts| counts.total());
        let posts = || {
            published
                .counted
                .iter()
                .filter(|post| post.deleted_at_ms.is_none())
        };
        let at_first_sight = |seen: &Seen| {
            let stored = posts().filter_map(|post| {
                let stored_at_ms = seen.stored_at_ms.get(&post.id)?;
                Some(at(*stored_at_ms, &post.id))
            });
            stored.sum()
        };
        Self {
            counts: posts().map(|post| at(now, &post.id)).sum(),
            naive: at_first_sight(naive),
            clamp: at_first_sight(clamp),
            driftline: posts()
                .filter_map(|post| driftline.counts.get(&post.id))
                .sum(),
            requests: driftline.refresh_stats.requests,
            posts_a_request: driftline.refresh_stats.mean_posts(),
        }
    }

    /// It in words.
    pub(super) fn line(&self) -> String {
        let part = |known: i64| 100.0 * known as f64 / self.counts.max(1) as f64;
        format!(
            "Of the {} replies, boosts and favourites by now, naive has {:.0} %, clamp {:.0} %, driftline {:.0} %: it looked stored posts up in {} requests, {:.1} posts each.",
            self.counts,
            part(self.naive),
            part(self.clamp),
            part(self.driftline),
            self.requests,
            self.posts_a_request.unwrap_or(0.0),
        )
    }
}
