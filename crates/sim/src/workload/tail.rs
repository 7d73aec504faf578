//! The number of posts and their lateness.

use driftline_core::rng::Rng;

use crate::{lateness::tweet_lateness_ms, quota::ThrottleRule};

/// A timeline's posts.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The number of new posts per second, at random (Poisson).
    pub rate_per_s: f64,
    /// The time for which posts have existed when the first poll is sent, in ms.
    pub history_ms: i64,
    /// Shares of posts with additional lateness.
    pub tails: Vec<Tail>,
    /// The throttle of the upstream.
    pub throttle: Option<ThrottleRule>,
}

/// A share of posts with additional lateness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Their share of all posts.
    pub share: f64,
    /// The smallest lateness in ms.
    pub from_ms: f64,
    /// The largest lateness in ms.
    pub to_ms: f64,
    /// True if the latenesses are evenly distributed over the logarithm of time, false if over
    /// time.
    pub logarithmic: bool,
    /// The time from which posts are affected, in ms after the beginning. With
    /// [`Tail::AFTER_PROOF`], after the plan was proven.
    pub begins_ms: i64,
    /// The duration in ms.
    pub lasts_ms: i64,
}

impl Tail {
    /// A value for [`Tail::begins_ms`]: an hour after the bound was proven.
    pub const AFTER_PROOF: i64 = -1;

    /// A share of all posts, with a lateness between these in ms.
    pub const fn always(share: f64, from_ms: f64, to_ms: f64) -> Self {
        Self {
            share,
            from_ms,
            to_ms,
            logarithmic: false,
            begins_ms: 0,
            lasts_ms: i64::MAX,
        }
    }

    fn draw_ms(&self, rng: &mut Rng) -> f64 {
        if self.logarithmic {
            let (from, to) = (self.from_ms.max(1.0).ln(), self.to_ms.max(1.0).ln());
            return rng.between(from, to).exp();
        }
        rng.between(self.from_ms, self.to_ms)
    }
}

impl Workload {
    /// A workload with the lateness measured on tweets.
    pub fn tweets(rate_per_s: f64) -> Self {
        Self {
            rate_per_s,
            history_ms: 60_000,
            tails: Vec::new(),
            throttle: None,
        }
    }

    /// The time to the next post, in ms, and its lateness, for a post written at `at_ms` after the
    /// beginning. `proven_ms` is the time of the proof, if there was one.
    pub(super) fn draw(&self, rng: &mut Rng, at_ms: f64, proven_ms: Option<i64>) -> (f64, f64) {
        let next_ms = -rng.share().ln() / self.rate_per_s * 1000.0;
        let mut kind = rng.share();
        for tail in &self.tails {
            let begins_ms = match tail.begins_ms {
                Tail::AFTER_PROOF => proven_ms.map(|ms| ms + 3_600_000),
                ms => Some(ms),
            };
            let since_ms = begins_ms.map(|begins_ms| at_ms - begins_ms as f64);
            let is_on = since_ms.is_some_and(|ms| ms >= 0.0 && ms < tail.lasts_ms as f64);
            if is_on && kind < tail.share {
                return (next_ms, tail.draw_ms(rng));
            }
            kind -= tail.share;
        }
        (next_ms, tweet_lateness_ms(rng.share()))
    }
}
