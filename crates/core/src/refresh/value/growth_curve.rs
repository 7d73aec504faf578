use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// `G(age)`: the share of a post's final engagement that is there by that age.
///
/// It rises from 0 at creation to 1 at [`AGE_ENDS_MS`]'s last, linearly in the logarithm of the age
/// between the ends of [`BINS`] log-spaced ages, and linearly in the age below the first of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<f64>")]
pub struct GrowthCurve(Vec<f64>);

/// How many bins of age a curve has after the first, which ends at a minute.
pub const BINS: usize = 32;

impl GrowthCurve {
    /// A curve of two figures (log-logistic): the age at which half of the engagement is there,
    /// and the share that is there after a day. What makes no sense is brought into reason: the
    /// half-life lies between a minute and 15 days, and the curve is neither a step nor flat.
    pub fn of_half_life(half_life_ms: i64, day_share: f64) -> Self {
        let half_ms = (half_life_ms as f64).clamp(FIRST_END_MS, LAST_END_MS / 2.0);
        let day_odds = match day_share {
            share if share > 0.0 && share < 1.0 => share / (1.0 - share),
            _ => DAY_ODDS,
        };
        let steepness = day_odds.ln() / (DAY_MS / half_ms).ln();
        let steepness = if steepness.is_finite() {
            steepness
        } else {
            1.0
        }
        .clamp(0.25, 4.0);
        let odds = |age_ms: f64| (age_ms / half_ms).powf(steepness);
        Self::of_shares((0..=BINS).map(|bin| {
            let odds = odds(end_ms(bin));
            odds / (1.0 + odds)
        }))
    }

    /// A curve through these shares at the ends of the bins, the first of them at a minute. It is
    /// made to rise and scaled so that the last is 1; shares that are missing or no numbers count
    /// as the one before, and a curve that never rises is linear in the logarithm of the age.
    pub fn of_shares(shares: impl IntoIterator<Item = f64>) -> Self {
        let mut given = shares.into_iter();
        let mut least = 0.0_f64;
        let mut rising: Vec<f64> = (0..=BINS)
            .map(|_| {
                let share = given.next().filter(|share| share.is_finite());
                least = least.max(share.unwrap_or(0.0).min(MAX_SHARE));
                least
            })
            .collect();
        if least <= 0.0 {
            rising = (0..=BINS).map(|bin| (bin + 1) as f64).collect();
            least = (BINS + 1) as f64;
        }
        Self(rising.iter().map(|share| share / least).collect())
    }

    /// The same curve this much faster, and steeper by a power of the age around the age at which
    /// half is there.
    pub(super) fn warped(&self, speed: f64, power: f64) -> Self {
        let half_ms = end_ms(self.0.partition_point(|share| *share < 0.5));
        Self::of_shares(AGE_ENDS_MS.iter().map(|end_ms| {
            let warped_ms = half_ms * (end_ms * speed / half_ms).powf(power);
            self.share_at(warped_ms)
        }))
    }

    /// The share that is there at an age, from 0 to 1.
    pub fn share(&self, age_ms: i64) -> f64 {
        self.share_at(age_ms as f64)
    }

    /// The shares at the ends of the bins, the first at a minute, the last (1) at 30 days.
    pub fn shares(&self) -> &[f64] {
        &self.0
    }

    /// What waiting `wait_ms` costs after a refresh at that age, for a post whose final engagement
    /// is 1, in hours: `W(s) = s m(s) - integral of m over [0, s]` with `m(s) = G(t+s) - G(t)`,
    /// which is the integral of `s dG(t+s)`. It never falls as `s` grows.
    ///
    /// The index of Avrachenkov & Borkar (arXiv 1503.08558) for content that loses interest with
    /// its age, as [`super::ValuePolicy`] needs it.
    pub fn regret_h(&self, age_ms: i64, wait_ms: i64) -> f64 {
        let from_ms = (age_ms as f64).max(0.0);
        let to_ms = from_ms + (wait_ms as f64).max(0.0);
        let bins = bin_of(from_ms)..=bin_of(to_ms).min(BINS);
        let regrets_h = bins.map(|bin| {
            let (low_ms, high_ms) = (start_ms(bin).max(from_ms), end_ms(bin).min(to_ms));
            self.piece(bin).regret_h(from_ms, low_ms, high_ms)
        });
        regrets_h.sum()
    }

    /// The shortest wait after which [`GrowthCurve::regret_h`] is at least `regret_h`, ms; `None`
    /// if no wait is long enough.
    pub fn wait_ms(&self, age_ms: i64, regret_h: f64) -> Option<i64> {
        if regret_h.is_nan() {
            return None;
        }
        if regret_h <= 0.0 {
            return Some(0);
        }
        let from_ms = (age_ms as f64).max(0.0);
        let mut left_h = regret_h;
        for bin in bin_of(from_ms)..=BINS {
            let (low_ms, high_ms) = (start_ms(bin).max(from_ms), end_ms(bin));
            let piece = self.piece(bin);
            let whole_h = piece.regret_h(from_ms, low_ms, high_ms);
            if whole_h >= left_h {
                let at_ms = piece.where_regret_is(left_h, from_ms, low_ms, high_ms);
                return Some((at_ms - from_ms).ceil().max(0.0) as i64);
            }
            left_h -= whole_h;
        }
        None
    }

    fn piece(&self, bin: usize) -> Piece {
        Piece {
            from: bin.checked_sub(1).map_or(0.0, |before| self.0[before]),
            to: self.0[bin],
            is_linear: bin == 0,
        }
    }

    fn share_at(&self, age_ms: f64) -> f64 {
        if age_ms <= 0.0 {
            return 0.0;
        }
        let bin = bin_of(age_ms);
        if bin > BINS {
            return 1.0;
        }
        let piece = self.piece(bin);
        let share = piece.from + piece.grown(start_ms(bin), age_ms.min(end_ms(bin)));
        share.clamp(piece.from, piece.to)
    }
}

impl Default for GrowthCurve {
    /// Half after 80 minutes and 95% after a day, as impressions of tweets (Pfeffer et al.,
    /// ICWSM 2023).
    fn default() -> Self {
        Self::of_half_life(80 * 60_000, 0.95)
    }
}

impl From<Vec<f64>> for GrowthCurve {
    fn from(shares: Vec<f64>) -> Self {
        Self::of_shares(shares)
    }
}

/// One bin of the curve.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: f64,
    to: f64,
    /// The bin below the first end is linear in the age, the others in its logarithm.
    is_linear: bool,
}

impl Piece {
    /// dG times the age, or dG itself where the piece is linear.
    fn slope(self) -> f64 {
        (self.to - self.from)
            / if self.is_linear {
                FIRST_END_MS
            } else {
                LN_RATIO
            }
    }

    fn grown(self, from_ms: f64, to_ms: f64) -> f64 {
        if self.is_linear {
            self.slope() * (to_ms - from_ms)
        } else {
            self.slope() * (to_ms / from_ms).ln()
        }
    }

    /// The integral of `(age - origin) dG`, hours.
    fn regret_h(self, origin_ms: f64, from_ms: f64, to_ms: f64) -> f64 {
        let regret_ms = if self.is_linear {
            let middle_ms = f64::midpoint(from_ms, to_ms);
            self.slope() * (to_ms - from_ms) * (middle_ms - origin_ms)
        } else {
            self.slope() * (to_ms - from_ms - origin_ms * (to_ms / from_ms).ln())
        };
        (regret_ms / HOUR_MS).max(0.0)
    }

    /// The least age between the two at which the regret is that much; it is so at `to_ms`.
    ///
    /// The regret is convex in the age, so Newton's steps from above stay above.
    fn where_regret_is(self, regret_h: f64, origin_ms: f64, from_ms: f64, to_ms: f64) -> f64 {
        let mut at_ms = to_ms;
        for _ in 0..MAX_STEPS {
            let rises_per_ms = if self.is_linear {
                self.slope() * (at_ms - origin_ms)
            } else {
                self.slope() * (1.0 - origin_ms / at_ms)
            };
            let over_ms = (self.regret_h(origin_ms, from_ms, at_ms) - regret_h) * HOUR_MS;
            let step_ms = over_ms / rises_per_ms;
            if !step_ms.is_finite() || step_ms <= RESOLUTION_MS {
                break;
            }
            at_ms = (at_ms - step_ms).max(from_ms);
        }
        at_ms
    }
}

/// The bin that an age lies in; `BINS + 1` past the last. Bin 0 ends at a minute.
pub(super) fn bin_of(age_ms: f64) -> usize {
    AGE_ENDS_MS.partition_point(|end_ms| *end_ms <= age_ms)
}

pub(super) fn start_ms(bin: usize) -> f64 {
    bin.checked_sub(1).map_or(0.0, end_ms)
}

pub(super) fn end_ms(bin: usize) -> f64 {
    AGE_ENDS_MS[bin.min(BINS)]
}

/// The bins' ends, whole ms: a minute, and from there in 32 equal ratios to 30 days.
pub static AGE_ENDS_MS: LazyLock<[f64; BINS + 1]> = LazyLock::new(|| {
    std::array::from_fn(|bin| (FIRST_END_MS * (LN_RATIO * bin as f64).exp()).round())
});

const FIRST_END_MS: f64 = 60_000.0;
const LAST_END_MS: f64 = 30.0 * DAY_MS;
const HOUR_MS: f64 = 3_600_000.0;
const DAY_MS: f64 = 24.0 * HOUR_MS;
/// 95 in 100.
const DAY_ODDS: f64 = 19.0;
/// Far from where sums of shares would overflow.
const MAX_SHARE: f64 = 1e100;
/// Of a bin's end to the end before it: the 32nd part of ln 43,200.
const LN_RATIO: f64 = 0.333_549_867_944_756_33;
/// As fine as due times need to be.
const RESOLUTION_MS: f64 = 0.5;
/// Newton needs a few; near the origin, where the regret is flat, it halves the distance.
const MAX_STEPS: usize = 60;
