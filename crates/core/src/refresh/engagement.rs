use serde::{Deserialize, Serialize};

use crate::post::Counts;

/// The weight of each count in a post's engagement. Views are left out: they grow without end, and
/// few upstreams report them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngagementWeights {
    /// Of a reply.
    pub replies: f64,
    /// Of a boost.
    pub boosts: f64,
    /// Of a favourite.
    pub favourites: f64,
    /// Of a post that quotes it.
    pub quotes: f64,
}

impl EngagementWeights {
    /// The weighted sum of a post's counts. Missing and negative counts add nothing, nor do counts
    /// whose weight is not finite.
    pub fn total(&self, counts: &Counts) -> f64 {
        let part = |weight: f64, count: Option<i64>| {
            let weight = if weight.is_finite() { weight } else { 0.0 };
            weight.clamp(0.0, MAX_WEIGHT) * count.unwrap_or(0).max(0) as f64
        };
        part(self.replies, counts.replies)
            + part(self.boosts, counts.boosts)
            + part(self.favourites, counts.favourites)
            + part(self.quotes, counts.quotes)
    }
}

impl Default for EngagementWeights {
    /// Each counts one.
    fn default() -> Self {
        Self {
            replies: 1.0,
            boosts: 1.0,
            favourites: 1.0,
            quotes: 1.0,
        }
    }
}

/// Far from where a sum of weighted counts would overflow.
const MAX_WEIGHT: f64 = 1e6;
