use driftline_core::rng::Rng;

use super::world::{History, World};

/// The parameters of a generated world.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldConfig {
    /// New posts per hour, averaged over a day.
    pub posts_per_hour: f64,
    /// How long it lasts, ms; it begins with the posts of as long a time before.
    pub length_ms: i64,
    /// The distribution of final engagement.
    pub totals: Totals,
    /// The age at which a typical post has half of its engagement, ms.
    pub half_life_ms: f64,
    /// The spread of ages within a post: of their logarithm, the standard deviation.
    pub spread: f64,
    /// The spread of half-lives from post to post, likewise.
    pub speeds: f64,
    /// The share of posts that are discovered again, days later, with as much engagement.
    pub revived: f64,
    /// The share of engagement that is taken back later.
    pub undone: f64,
    /// How much busier noon is than the mean of the day, and midnight quieter; from 0 to 1.
    pub tide: f64,
}

/// The distribution of posts' expected final engagement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Totals {
    /// Log-normal.
    LogNormal {
        /// Half of the posts expect less.
        median: f64,
        /// The standard deviation of the logarithm.
        spread: f64,
    },
    /// Pareto: heavier tails, no post expects less than `least`.
    Pareto {
        /// The least.
        least: f64,
        /// The exponent.
        exponent: f64,
    },
}

impl WorldConfig {
    /// A world that begins at Unix ms 0. The same seed makes the same world.
    pub fn world(&self, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let hours = 2.0 * self.length_ms as f64 / HOUR_MS;
        let count = rng.times(self.posts_per_hour * hours);
        let histories = (0..count).map(|_| self.history(&mut rng));
        World::new(histories)
    }

    fn history(&self, rng: &mut Rng) -> History {
        let created_at_ms = self.created_at_ms(rng);
        // Older posts are read page by page in the first two days, as a backfill does.
        let first_stored_ms = if created_at_ms < 0 {
            rng.between(0.0, (2.0 * DAY_MS).min(self.length_ms as f64 / 4.0)) as i64
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
            let created_at_ms = rng.between(-(self.length_ms as f64), self.length_ms as f64);
            let tide = 1.0 - self.tide * (std::f64::consts::TAU * created_at_ms / DAY_MS).cos();
            if rng.share() * (1.0 + self.tide) < tide {
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
            let age_ms = half_ms * (self.spread * rng.normal()).exp();
            changes.push((from_ms.saturating_add(age_ms as i64), 1.0));
            if rng.share() < self.undone {
                let undone_ms = age_ms + rng.between(0.0, DAY_MS);
                changes.push((from_ms.saturating_add(undone_ms as i64), -1.0));
            }
        }
    }
}

impl Default for WorldConfig {
    /// Posts as the default curve expects them.
    fn default() -> Self {
        Self {
            posts_per_hour: 60.0,
            length_ms: 30 * DAY_MS as i64,
            totals: Totals::LogNormal {
                median: 2.0,
                spread: 1.8,
            },
            half_life_ms: 80.0 * 60_000.0,
            spread: 1.75,
            speeds: 0.4,
            revived: 0.0,
            undone: 0.0,
            tide: 0.6,
        }
    }
}

impl Totals {
    fn draw(self, rng: &mut Rng) -> f64 {
        let drawn = match self {
            Self::LogNormal { median, spread } => median * (spread * rng.normal()).exp(),
            Self::Pareto { least, exponent } => least * rng.share().powf(-1.0 / exponent),
        };
        drawn.min(MAX_TOTAL)
    }
}

/// The most engagement of a post in a generated world.
const MAX_TOTAL: f64 = 20_000.0;
const HOUR_MS: f64 = 3_600_000.0;
const DAY_MS: f64 = 24.0 * HOUR_MS;
