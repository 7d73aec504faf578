//! How what an upstream counts on a post grows.

use driftline_core::post::Counts;
use smart_default::SmartDefault;

use crate::{
    rng::{Rng, mix},
    span::SpanMs,
};

/// Counts with heavy-tailed totals, reached at a rate that falls as a power
/// of age, except for late bloomers, which start once more.
///
/// The defaults follow the measured median half-life of impressions of about
/// 80 minutes, with about 95% of posts at rest after a day (Pfeffer et al.,
/// ICWSM 2023); the totals' spread is a choice, not a measurement.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct Growth {
    /// The median post's final total of replies, boosts, favourites and
    /// quotes. Default 8.
    #[default(8.0)]
    pub median_total: f64,
    /// How far totals spread: the standard deviation of their logarithm
    /// (lognormal). Default 1.8, so one post in 100 gets 66 times the median.
    #[default(1.8)]
    pub total_spread: f64,
    /// No total is above this. Default a million.
    #[default(1e6)]
    pub most: f64,
    /// When the median post has half of its total, ms after it became
    /// visible. Default 80 minutes.
    #[default(80 * 60_000)]
    pub half_life_ms: i64,
    /// How far half-lives spread: the standard deviation of their logarithm.
    /// Default 0.5.
    #[default(0.5)]
    pub half_life_spread: f64,
    /// The share of posts that are found again much later. Default 0.03.
    #[default(0.03)]
    pub late_share: f64,
    /// When that happens, ms after such a post became visible. Default 6
    /// hours to 5 days.
    #[default(SpanMs::new(6 * 3_600_000, 5 * 86_400_000))]
    pub late_after_ms: SpanMs,
}

impl Growth {
    /// The counts of the post with these genes at an age, ms. They never
    /// shrink as age grows.
    pub(crate) fn counts(&self, genes: u64, age_ms: i64) -> Counts {
        // Draws the same number of times for every post.
        let mut rng = Rng::stream(genes, LIFE);
        let total = (self.median_total * (self.total_spread * normal(&mut rng)).exp())
            .clamp(0.0, self.most.max(0.0));
        let half_life_ms =
            self.half_life_ms as f64 * (self.half_life_spread * normal(&mut rng)).exp();
        let is_late = rng.happens(self.late_share);
        let late_after_ms = self.late_after_ms.draw(&mut rng);
        let late_part = if is_late { LATE_PART } else { 0.0 };
        let share = (1.0 - late_part) * reached(age_ms, half_life_ms)
            + late_part * reached(age_ms - late_after_ms, half_life_ms);
        let [replies, boosts, favourites, quotes, views] = std::array::from_fn(|kind| {
            let taste = (0.4 * normal(&mut rng)).exp();
            let most = (total * PARTS[kind] * taste + rng.share()) as i64;
            Some(reached_count(most, share, genes, kind))
        });
        Counts {
            replies,
            boosts,
            favourites,
            quotes,
            views,
        }
    }
}

/// `1 - (1 + age / scale)^-decay`, with the scale that puts one half at
/// the half-life.
fn reached(age_ms: i64, half_life_ms: f64) -> f64 {
    let scale = half_life_ms.max(1.0) / ((1.0 / DECAY).exp2() - 1.0);
    1.0 - (1.0 + age_ms.max(0) as f64 / scale).powf(-DECAY)
}

/// How much of a final count is there: every reader, or group of readers,
/// comes at a moment of its own, so that the path is as ragged as real ones.
fn reached_count(most: i64, share: f64, genes: u64, kind: usize) -> i64 {
    let steps = most.clamp(0, MAX_STEPS);
    if steps == 0 {
        return 0;
    }
    let own = mix(genes, 9_000 + kind as u64);
    // Below the share of all 64-bit numbers; the cast saturates at all of them.
    let bar = (share * 2f64.powi(64)) as u64;
    let done = (0..steps as u64).filter(|&step| mix(own, step) < bar);
    let done = i64::try_from(done.count()).unwrap_or(steps);
    (i128::from(most) * i128::from(done) / i128::from(steps)) as i64
}

/// A draw from the standard normal distribution (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.share()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.share()).cos()
}

/// The replies, boosts, favourites, quotes and views for each of the total.
const PARTS: [f64; 5] = [0.12, 0.2, 0.65, 0.03, 60.0];
/// The share still to come falls with this power of age: 2.5% is still to come when the median post
/// is a day old.
const DECAY: f64 = 1.5;
/// The share of its total that a post gets when it is found again.
const LATE_PART: f64 = 0.8;
/// Above this, several readers come at once.
const MAX_STEPS: i64 = 512;
/// The random stream of a post's genes.
const LIFE: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn total(counts: Counts) -> i64 {
        [
            counts.replies,
            counts.boosts,
            counts.favourites,
            counts.quotes,
        ]
        .into_iter()
        .flatten()
        .sum()
    }

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn totals_have_the_median_and_a_heavy_tail() {
        let growth = Growth::default();
        let mut totals: Vec<i64> = (0..20_000)
            .map(|n| total(growth.counts(mix(n, 5), 10_000 * DAY_MS)))
            .collect();
        totals.sort_unstable();
        assert!((7..=9).contains(&totals[10_000]), "{}", totals[10_000]);
        assert!(totals[19_800] > 300, "{}", totals[19_800]);
        assert!(totals[19_998] > 2_000, "{}", totals[19_998]);
    }

    #[test]
    fn half_of_all_is_there_at_the_half_life_and_nearly_all_after_a_day() {
        let growth = Growth {
            late_share: 0.0,
            half_life_spread: 0.0,
            total_spread: 0.0,
            median_total: 400.0,
            ..Growth::default()
        };
        let sum = |age_ms| -> i64 {
            let counts = (0..500).map(|n| growth.counts(mix(n, 6), age_ms));
            counts.map(total).sum()
        };
        let whole = sum(100_000 * DAY_MS) as f64;
        for (age_ms, share) in [(0, 0.0), (80 * 60_000, 0.5), (DAY_MS, 0.975)] {
            let seen = sum(age_ms) as f64 / whole;
            assert!((seen - share).abs() < 0.01, "{age_ms} ms: {seen}");
            assert!((reached(age_ms, 80.0 * 60_000.0) - share).abs() < 0.001);
        }
    }

    #[test]
    fn late_bloomers_get_most_of_it_late() {
        let growth = Growth {
            late_share: 1.0,
            late_after_ms: SpanMs::new(2 * DAY_MS, 2 * DAY_MS),
            median_total: 10_000.0,
            total_spread: 0.0,
            ..Growth::default()
        };
        let at = |age_ms| total(growth.counts(7, age_ms)) as f64;
        let whole = at(100_000 * DAY_MS);
        assert!(at(2 * DAY_MS) < 0.25 * whole);
        assert!(at(3 * DAY_MS) > 0.85 * whole);
    }

    #[test]
    fn no_count_ever_shrinks() {
        let growth = Growth {
            late_share: 0.5,
            median_total: 300.0,
            ..Growth::default()
        };
        for genes in 0..50 {
            let counts: Vec<Counts> = (0..200)
                .map(|n| growth.counts(mix(genes, 1), n * DAY_MS / 20))
                .collect();
            for pair in counts.windows(2) {
                assert!(pair[0].replies <= pair[1].replies);
                assert!(pair[0].boosts <= pair[1].boosts);
                assert!(pair[0].favourites <= pair[1].favourites);
                assert!(pair[0].quotes <= pair[1].quotes);
                assert!(pair[0].views <= pair[1].views);
            }
        }
    }
}
