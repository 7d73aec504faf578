use driftline_core::rng::Rng;
use smart_default::SmartDefault;

use super::world::{History, World};

/// The parameters of a generated world. By default, posts grow as the value policy expects.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct WorldConfig {
    /// New posts per hour, averaged over a day.
    #[default(60.0)]
    pub posts_per_hour: f64,
    /// The distribution of final engagement.
    #[default(Totals::LogNormal { median: 2.0 })]
    pub totals: Totals,
    /// The age at which a typical post has half of its engagement, ms.
    #[default(80.0 * 60_000.0)]
    pub half_life_ms: f64,
    /// The spread of half-lives from post to post: of their logarithm, the standard deviation.
    #[default(0.4)]
    pub speeds: f64,
    /// The share of posts that are discovered again, days later, with as much engagement.
    pub revived: f64,
    /// The share of engagement that is taken back later.
    pub undone: f64,
}

/// The distribution of posts' expected final engagement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Totals {
    /// Log-normal.
    LogNormal {
        /// Half of the posts expect less.
        median: f64,
    },
    /// Pareto: heavier tails, no post expects less than one.
    Pareto {
        /// The exponent.
        exponent: f64,
    },
}

impl WorldConfig {
    /// A world that begins at Unix ms 0. The same seed makes the same world.
    pub fn world(&self, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let hours = 2.0 * LENGTH_MS as f64 / HOUR_MS;
        let count = rng.times(self.posts_per_hour * hours);
        let histories = (0..count).map(|_| self.history(&mut rng));
        World::new(histories)
    }

    fn history(&self, rng: &mut Rng) -> History {
        let created_at_ms = self.created_at_ms(rng);
        // Older posts are read page by page in the first two days, as a backfill does.
        let first_stored_ms = if created_at_ms < 0 {
            rng.between(0.0, (2.0 * DAY_MS).min(LENGTH_MS as f64 / 4.0)) as i64
        } else {
            created_at_ms + rng.between(2_000.0, 30_000.0) as i64
        };
        let expected = self.totals.draw(rng);
        let half_ms = self.half_life_ms * (self.speeds * rng.normal()).exp();
        let mut changes = Vec::new();
        self.wave(expected, half_ms, created_at_ms, &mut changes, rng);
        if rng.share() < self.revived {
            let later_ms = rng.between(3.0_f64.ln(), 240.0_f64.ln()).exp() * HOUR_MS;
            self.wave(
                expected,
                half_ms,
                created_at_ms + later_ms as i64,
                &mut changes,
                rng,
            );
        }
        changes.retain(|change| change.0 < created_at_ms + (30.0 * DAY_MS) as i64);
        History {
            created_at_ms,
            first_stored_ms,
            changes,
        }
    }

    /// The creation time of a post; more are created by day than by night.
    fn created_at_ms(&self, rng: &mut Rng) -> i64 {
        loop {
            let created_at_ms = rng.between(-(LENGTH_MS as f64), LENGTH_MS as f64);
            let tide = 1.0 - TIDE * (std::f64::consts::TAU * created_at_ms / DAY_MS).cos();
            if rng.share() * (1.0 + TIDE) < tide {
                return created_at_ms as i64;
            }
        }
    }

    fn wave(
        &self,
        expected: f64,
        half_ms: f64,
        from_ms: i64,
        changes: &mut Vec<(i64, f64)>,
        rng: &mut Rng,
    ) {
        for _ in 0..rng.times(expected) {
            let age_ms = half_ms * (SPREAD * rng.normal()).exp();
            changes.push((from_ms.saturating_add(age_ms as i64), 1.0));
            if rng.share() < self.undone {
                let undone_ms = age_ms + rng.between(0.0, DAY_MS);
                changes.push((from_ms.saturating_add(undone_ms as i64), -1.0));
            }
        }
    }
}

impl Totals {
    fn draw(self, rng: &mut Rng) -> f64 {
        let drawn = match self {
            Self::LogNormal { median } => median * (TOTAL_SPREAD * rng.normal()).exp(),
            Self::Pareto { exponent } => rng.share().powf(-1.0 / exponent),
        };
        drawn.min(MAX_TOTAL)
    }
}

/// How long a generated world lasts, ms; it begins with the posts of as long a time before.
pub(super) const LENGTH_MS: i64 = 30 * DAY_MS as i64;
/// The standard deviation of the logarithm of posts' expected engagement.
const TOTAL_SPREAD: f64 = 1.8;
/// The spread of ages within a post, likewise.
const SPREAD: f64 = 1.75;
/// How much busier noon is than the mean of the day, and midnight quieter.
const TIDE: f64 = 0.6;
/// The most engagement of a post in a generated world.
const MAX_TOTAL: f64 = 20_000.0;
const HOUR_MS: f64 = 3_600_000.0;
const DAY_MS: f64 = 24.0 * HOUR_MS;
