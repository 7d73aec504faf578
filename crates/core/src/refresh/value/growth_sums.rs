use serde::{Deserialize, Serialize};

use super::growth_curve::{BINS, GrowthCurve, bin_of, end_ms, start_ms};

/// Growth of posts as observed by refreshes: sums of a fixed size, so that those of several workers
/// merge by addition.
///
/// Per bin of age: by how much counts grew, and what they grew from. The quotient of these pooled
/// sums is the growth of the logarithm of the count over that bin (the development factors of
/// the chain ladder, Mack 1993); posts of any size and refreshed at any ages add to it without
/// bias, for what they are weighted by is known before the growth is.
///
/// The first bin's sums are not used. After the bins come two more: the growth after the first sight
/// of new posts, per share of the curve, and that of posts that had no engagement yet, per share of
/// the curve and of the posterior.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Ratio>")]
pub struct GrowthSums(Vec<Ratio>);

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
    /// Whether the earlier one was the first sight of the post.
    pub is_first: bool,
}

/// The gamma distribution that posts' final engagement is taken to come from: with `alpha` the
/// shape and `beta` the rate, its mean is `alpha / beta`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    /// The number of observations, weighted: the prior engagement of each post is known only when
    /// the quotient is made, and is added to the exposure then.
    times: u64,
}

impl GrowthSums {
    /// Adds the growth that a refresh has shown; `curve`, the estimate so far, determines how growth
    /// over several bins is spread. Invalid growth (ages that do not rise or lie past the curve,
    /// figures that are not finite) is ignored.
    pub fn observe(&mut self, growth: &Growth, curve: &GrowthCurve) {
        let (from_ms, to_ms) = (
            growth.from_age_ms.max(0) as f64,
            (growth.to_age_ms as f64).min(end_ms(BINS)),
        );
        let is_known = growth.from.is_finite() && growth.to.is_finite() && growth.from >= 0.0;
        if !is_known || to_ms <= from_ms {
            return;
        }
        // Fewer than before: people took favourites back. On the whole, nothing grew.
        let grown = (growth.to - growth.from).max(0.0);
        let grown = grown.min(MAX_GROWTH * (growth.from + MAX_FROM_NOTHING));
        let share_of = |age_ms: f64| curve.share(age_ms as i64);
        let (before, after) = (share_of(from_ms), share_of(to_ms));
        self.observe_scale(growth, grown, before, after);
        let weight = 1.0 / (1.0 + growth.from / WEIGHED);
        let mut reached = growth.from;
        for bin in bin_of(from_ms)..=bin_of(to_ms).min(BINS) {
            let (low_ms, high_ms) = (start_ms(bin).max(from_ms), end_ms(bin).min(to_ms));
            if high_ms <= low_ms {
                continue;
            }
            let part = if after > before {
                (share_of(high_ms) - share_of(low_ms)) / (after - before)
            } else {
                (high_ms / low_ms.max(1.0)).ln() / (to_ms / from_ms.max(1.0)).ln()
            };
            let here = grown * part.clamp(0.0, 1.0);
            if bin > 0 {
                let covered = (high_ms / low_ms).ln() / (end_ms(bin) / start_ms(bin)).ln();
                let level = reached + here / 2.0;
                let covered = weight * covered;
                self.0[bin].add(weight * here, level * covered, covered);
            }
            reached += here;
        }
    }

    fn observe_scale(&mut self, growth: &Growth, grown: f64, before: f64, after: f64) {
        let gained = after - before;
        if gained <= 0.0 {
            return;
        }
        if growth.is_first && before < YOUNG {
            self.0[NEW_POST].add(grown.min(MAX_SCALE), gained, 1.0);
        } else if growth.from < 0.5 {
            let exposed = gained / (before + YOUNG);
            self.0[SILENT].add(grown.min(MAX_SCALE), exposed, 1.0);
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

    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.combine(*theirs, with);
        }
    }

    /// [`GrowthSums::fade`], once much growth is in them.
    pub fn fade_if_full(&mut self) {
        if self.seen() > FADE_AT {
            self.fade();
        }
    }

    /// Halves all sums, so that later observations weigh more: a source's growth changes.
    pub fn fade(&mut self) {
        for ratio in &mut self.0 {
            ratio.combine(*ratio, |sum, _| sum / 2);
        }
    }

    /// The total growth observed, weighted.
    pub fn seen(&self) -> f64 {
        let bins = self.0[..=BINS].iter();
        bins.map(|bin| bin.grown as f64 / UNIT).sum()
    }

    /// The curve and the scale that the sums show, drawn towards what was expected as if that had
    /// been seen over `weight` posts, and with as much engagement in every bin.
    pub fn learned(
        &self,
        prior: &GrowthCurve,
        expected: Scale,
        weight: f64,
    ) -> (GrowthCurve, Scale) {
        let weight = if weight > 0.0 {
            weight.min(MAX_WEIGHT)
        } else {
            MIN_WEIGHT
        };
        let scale = self.scale(expected.reasonable(), weight);
        (self.curve(prior, weight, scale), scale)
    }

    /// The growth of `ln(beta + G)` over a bin is what counts grew by over what they and `alpha`
    /// were; from 1 at the last end it goes back to creation. Each bin is drawn towards the same bin
    /// of `prior`, made slower or faster and steeper or flatter as the sums as a whole are most
    /// likely to come from.
    fn curve(&self, prior: &GrowthCurve, weight: f64, scale: Scale) -> GrowthCurve {
        let prior = self.likeliest(prior, scale);
        let expected = growths(&prior, scale.beta);
        let mut level = 1.0 + scale.beta;
        let mut shares = [1.0; BINS + 1];
        for bin in (1..=BINS).rev() {
            let (grown, exposed) = self.0[bin].with(scale.alpha);
            let growth = (grown + weight * expected[bin]) / (exposed + weight);
            level *= (-growth).exp();
            shares[bin - 1] = (level - scale.beta).max(MIN_SHARE);
        }
        GrowthCurve::of_shares(shares)
    }

    fn scale(&self, expected: Scale, weight: f64) -> Scale {
        let drawn = |ratio: Ratio, expected: f64| {
            let (grown, exposed) = ratio.with(0.0);
            (grown + weight * expected) / (exposed + weight)
        };
        let alpha = drawn(self.0[SILENT], expected.alpha);
        let mean = drawn(self.0[NEW_POST], expected.alpha / expected.beta);
        let beta = alpha / mean;
        Scale { alpha, beta }.reasonable()
    }

    /// Of the prior's warps the one under which the sums are likeliest (as counts of a Poisson
    /// process), and those near the prior likelier to begin with.
    fn likeliest(&self, prior: &GrowthCurve, scale: Scale) -> GrowthCurve {
        let candidates = warps().map(|(speed, power)| {
            let warped = prior.warped(speed, power);
            let expected = growths(&warped, scale.beta);
            let bins = self.0.iter().zip(expected).skip(1);
            let likelihoods = bins.map(|(ratio, growth)| {
                let (grown, exposed) = ratio.with(scale.alpha);
                grown * growth.max(MIN_SHARE).ln() - exposed * growth
            });
            let likelihood = likelihoods.sum::<f64>() - speed.ln().powi(2) - power.ln().powi(2);
            (likelihood, warped)
        });
        // Of equals the first.
        let likeliest = candidates.reduce(|best, next| if next.0 > best.0 { next } else { best });
        likeliest.map_or_else(|| prior.clone(), |(_, warped)| warped)
    }
}

impl Default for GrowthSums {
    fn default() -> Self {
        Self(vec![Ratio::default(); RATIOS])
    }
}

impl From<Vec<Ratio>> for GrowthSums {
    fn from(mut ratios: Vec<Ratio>) -> Self {
        ratios.resize(RATIOS, Ratio::default());
        Self(ratios)
    }
}

impl Ratio {
    fn add(&mut self, grown: f64, exposed: f64, times: f64) {
        let more = Self {
            grown: (grown * UNIT) as u64,
            exposed: (exposed * UNIT) as u64,
            times: (times * UNIT) as u64,
        };
        self.combine(more, u64::saturating_add);
    }

    /// Both, with the prior engagement of each post.
    fn with(self, alpha: f64) -> (f64, f64) {
        let exposed = self.exposed as f64 + alpha * self.times as f64;
        (self.grown as f64 / UNIT, exposed / UNIT)
    }

    fn combine(&mut self, other: Self, with: fn(u64, u64) -> u64) {
        self.grown = with(self.grown, other.grown);
        self.exposed = with(self.exposed, other.exposed);
        self.times = with(self.times, other.times);
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

/// By how much `ln(beta + G)` grows over each bin; over the first, nothing.
fn growths(curve: &GrowthCurve, beta: f64) -> [f64; BINS + 1] {
    let shares = curve.shares();
    let mut growths = [0.0; BINS + 1];
    for (growth, ends) in growths.iter_mut().skip(1).zip(shares.windows(2)) {
        *growth = ((beta + ends[1]) / (beta + ends[0])).ln();
    }
    growths
}

/// How a prior may be wrong: by speed, up to 32 times either way, and by steepness.
fn warps() -> impl Iterator<Item = (f64, f64)> {
    let powers = [0.5, 0.7, 0.85, 1.0, 1.2, 1.5];
    let speeds = (-10..=10).map(|half| 2.0_f64.powf(f64::from(half) / 2.0));
    speeds.flat_map(move |speed| powers.map(|power| (speed, power)))
}

fn positive_or(figure: f64, default: f64) -> f64 {
    if figure.is_finite() && figure > 0.0 {
        figure
    } else {
        default
    }
}

/// The growth at which sums are halved.
const FADE_AT: f64 = 500_000.0;
/// After the bins.
const NEW_POST: usize = BINS + 1;
const SILENT: usize = BINS + 2;
const RATIOS: usize = BINS + 3;
/// Sums are kept in this fraction: whole numbers add up the same in any order.
const UNIT: f64 = 1_048_576.0;
/// Above this much engagement, a post weighs no more than one of it.
const WEIGHED: f64 = 20.0;
/// Growth beyond this many times the count, plus as many times [`MAX_FROM_NOTHING`], is cut.
const MAX_GROWTH: f64 = 10.0;
const MAX_FROM_NOTHING: f64 = 10.0;
/// One post says no more than this of what posts have on the whole.
const MAX_SCALE: f64 = 200.0;
/// A post is young while less than this share of its engagement is there.
const YOUNG: f64 = 0.05;
const MIN_SHARE: f64 = 1e-6;
const MIN_WEIGHT: f64 = 1e-6;
const MAX_WEIGHT: f64 = 1e9;
