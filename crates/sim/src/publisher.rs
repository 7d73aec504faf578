//! When posts are created.

use crate::{
    config::{Bursts, DatedTomorrow, WorldConfig},
    rng::Rng,
};

/// A post about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Creation {
    /// True time, Unix ms.
    pub(crate) at_ms: i64,
    /// How far its ID is ahead, if it is the one dated tomorrow.
    pub(crate) ahead_ms: Option<i64>,
}

/// The creations of a world, in order of time.
#[derive(Debug, Clone)]
pub(crate) struct Publisher {
    rng: Rng,
    start_ms: i64,
    end_ms: i64,
    mean_gap_ms: f64,
    /// After the start; fractions are kept so that the rate is exact.
    next_arrival_ms: f64,
    bursts: Option<Bursts>,
    burst_posts: u64,
    tomorrow: Option<DatedTomorrow>,
}

impl Publisher {
    pub(crate) fn new(config: &WorldConfig, rng: Rng) -> Self {
        let mean_gap_ms = if config.rate_per_s > 0.0 {
            1000.0 / config.rate_per_s
        } else {
            f64::INFINITY
        };
        let mut publisher = Self {
            rng,
            start_ms: config.start_ms,
            end_ms: config.publish_for_ms.map_or(i64::MAX, |for_ms| {
                config.start_ms.saturating_add(for_ms.max(0))
            }),
            mean_gap_ms,
            next_arrival_ms: 0.0,
            bursts: config
                .bursts
                .filter(|bursts| bursts.posts > 0 && bursts.every_ms > 0),
            burst_posts: 0,
            tomorrow: config.dated_tomorrow,
        };
        publisher.draw_arrival();
        publisher
    }

    /// The next creation, if it is not after `now_ms`.
    pub(crate) fn next_until(&mut self, now_ms: i64) -> Option<Creation> {
        let arrival = self.start_ms.saturating_add(self.next_arrival_ms as i64);
        let burst = self.next_burst_ms();
        let tomorrow = self.tomorrow.map_or(i64::MAX, |tomorrow| {
            self.start_ms.saturating_add(tomorrow.after_ms)
        });
        let at_ms = arrival.min(burst).min(tomorrow);
        if at_ms > now_ms || at_ms >= self.end_ms {
            return None;
        }
        let mut ahead_ms = None;
        if at_ms == tomorrow {
            ahead_ms = self.tomorrow.take().map(|tomorrow| tomorrow.ahead_ms);
        } else if at_ms == burst {
            self.burst_posts += 1;
        } else {
            self.draw_arrival();
        }
        Some(Creation { at_ms, ahead_ms })
    }

    /// Creates nothing at or after a time, Unix ms.
    pub(crate) fn end_at(&mut self, end_ms: i64) {
        self.end_ms = self.end_ms.min(end_ms);
    }

    fn draw_arrival(&mut self) {
        self.next_arrival_ms -= (1.0 - self.rng.share()).ln() * self.mean_gap_ms;
    }

    fn next_burst_ms(&self) -> i64 {
        let Some(bursts) = self.bursts else {
            return i64::MAX;
        };
        let posts = u64::from(bursts.posts);
        let (burst, post) = (self.burst_posts / posts, self.burst_posts % posts);
        let span_ms = bursts.span_ms.clamp(0, bursts.every_ms);
        let into_ms = i128::from(span_ms) * i128::from(post) / i128::from(posts);
        let at_ms = i128::from(self.start_ms)
            + i128::from(bursts.every_ms) * i128::from(burst + 1)
            + into_ms;
        i64::try_from(at_ms).unwrap_or(i64::MAX)
    }
}
