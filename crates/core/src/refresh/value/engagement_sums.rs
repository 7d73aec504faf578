use serde::{Deserialize, Serialize};

use super::growth_curve::share;

/// The engagement of posts as observed by refreshes: sums of a fixed size, so that those of several
/// workers merge by addition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EngagementSums {
    /// Growth after the first sight of new posts, per share of the curve.
    new_posts: Ratio,
    /// Growth of posts that had no engagement yet, per share of the curve and of the posterior.
    silent_posts: Ratio,
}

/// A post's count at one refresh and at the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The age at the earlier refresh, ms.
    pub from_age_ms: i64,
    /// The engagement then.
    pub from: f64,
    /// The age at the later one, ms.
    pub to_age_ms: i64,
    /// The engagement then.
    pub to: f64,
    /// True if the earlier one was the first sight of the post.
    pub is_first: bool,
}

/// The gamma distribution that posts' final engagement is taken to come from: with `alpha` the
/// shape and `beta` the rate, its mean is `alpha / beta`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The engagement that a post is assumed to have before any is counted.
    pub alpha: f64,
    /// The share of the curve to which it belongs.
    pub beta: f64,
}

/// A numerator and a denominator, in 2^-20; both only grow, and stop at the most there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Ratio {
    grown: u64,
    exposed: u64,
}

impl EngagementSums {
    /// Adds the growth that a refresh has shown. Invalid growth (a share of the curve that does not
    /// rise, figures that are not finite) is ignored.
    pub fn observe(&mut self, growth: &Growth) {
        let before = share(growth.from_age_ms);
        let gained = share(growth.to_age_ms) - before;
        let is_known = growth.from.is_finite() && growth.to.is_finite() && growth.from >= 0.0;
        if !is_known || gained <= 0.0 {
            return;
        }
        // Fewer than before: people took favourites back. On the whole, nothing grew.
        let grown = (growth.to - growth.from).clamp(0.0, MAX_GROWTH);
        if growth.is_first && before < YOUNG {
            self.new_posts.add(grown, gained);
        } else if growth.from < 0.5 {
            self.silent_posts.add(grown, gained / (before + YOUNG));
        }
    }

    /// Adds another worker's sums.
    pub fn merge(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// The sums without a part that was merged into them before.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let mut rest = self.clone();
        rest.combine(part, u64::saturating_sub);
        rest
    }

    /// Halves the sums once much growth is in them, so that later observations weigh more: what the
    /// posts of a source get changes.
    pub fn fade_if_full(&mut self) {
        if self.new_posts.grown.max(self.silent_posts.grown) as f64 > FADE_AT * UNIT {
            let all = self.clone();
            self.combine(&all, |sum, _| sum / 2);
        }
    }

    /// The scale that the sums show, drawn towards what was expected as if that had been seen over
    /// `weight` posts.
    pub fn scale(&self, expected: Scale, weight: f64) -> Scale {
        let weight = if weight > 0.0 {
            weight.min(MAX_WEIGHT)
        } else {
            MIN_WEIGHT
        };
        let expected = expected.reasonable();
        let drawn = |ratio: Ratio, expected: f64| {
            let (grown, exposed) = (ratio.grown as f64 / UNIT, ratio.exposed as f64 / UNIT);
            (grown + weight * expected) / (exposed + weight)
        };
        let alpha = drawn(self.silent_posts, expected.alpha);
        let mean = drawn(self.new_posts, expected.alpha / expected.beta);
        let beta = alpha / mean;
        Scale { alpha, beta }.reasonable()
    }

    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.new_posts.combine(other.new_posts, with);
        self.silent_posts.combine(other.silent_posts, with);
    }
}

impl Ratio {
    fn add(&mut self, grown: f64, exposed: f64) {
        let more = Self {
            grown: (grown * UNIT) as u64,
            exposed: (exposed * UNIT) as u64,
        };
        self.combine(more, u64::saturating_add);
    }

    fn combine(&mut self, other: Self, with: fn(u64, u64) -> u64) {
        self.grown = with(self.grown, other.grown);
        self.exposed = with(self.exposed, other.exposed);
    }
}

impl Scale {
    /// The final engagement to expect of a post that had `total` when this share was there.
    pub fn expected(self, total: f64, share: f64) -> f64 {
        (self.alpha + total) / (self.beta + share)
    }

    /// Both within the bounds in which the policy computes.
    pub fn reasonable(self) -> Self {
        let default = Self::default();
        Self {
            alpha: positive_or(self.alpha, default.alpha).clamp(1e-3, 1e3),
            beta: positive_or(self.beta, default.beta).clamp(1e-4, 1e2),
        }
    }
}

impl Default for Scale {
    /// Ten of engagement a post, most of them with less.
    fn default() -> Self {
        Self {
            alpha: 0.5,
            beta: 0.05,
        }
    }
}

fn positive_or(figure: f64, default: f64) -> f64 {
    if figure.is_finite() && figure > 0.0 {
        figure
    } else {
        default
    }
}

/// The growth at which sums are halved.
const FADE_AT: f64 = 50_000.0;
/// Sums are kept in this fraction: whole numbers add up the same in any order.
const UNIT: f64 = 1_048_576.0;
/// One post says no more than this of what posts have on the whole.
const MAX_GROWTH: f64 = 200.0;
/// A post is young while less than this share of its engagement is there.
const YOUNG: f64 = 0.05;
const MIN_WEIGHT: f64 = 1e-6;
const MAX_WEIGHT: f64 = 1e9;
