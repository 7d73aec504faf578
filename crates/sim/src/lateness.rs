//! How long after its creation a post becomes visible.

use smart_default::SmartDefault;

use crate::rng::Rng;

/// The distribution of lateness: the one measured on two million real IDs
/// (`docs/timeline.md`), scaled.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct Lateness {
    /// Multiplies every lateness; 0 makes all posts punctual. Default 1.
    #[default(1.0)]
    pub scale: f64,
    /// Multiplies the share of posts in the tail, which is the latest 1% as
    /// measured (160 ms and more). Default 1; at most 100 has an effect.
    #[default(1.0)]
    pub tail: f64,
}

impl Lateness {
    /// No post is late.
    pub const PUNCTUAL: Self = Self {
        scale: 0.0,
        tail: 1.0,
    };

    /// The lateness at a quantile of the scaled distribution, ms; `share` is
    /// between 0 and 1.
    pub fn quantile_ms(self, share: f64) -> f64 {
        let tail = (TAIL_SHARE * self.tail).clamp(0.0, 1.0);
        let body = 1.0 - tail;
        let share = share.clamp(0.0, 1.0);
        let measured = if tail > 0.0 && share >= body {
            1.0 - TAIL_SHARE + TAIL_SHARE * (share - body) / tail
        } else {
            (1.0 - TAIL_SHARE) * share / body
        };
        tweet_lateness_ms(measured) * self.scale.max(0.0)
    }

    pub(crate) fn draw_ms(self, rng: &mut Rng) -> i64 {
        self.quantile_ms(rng.share()).round() as i64
    }
}

/// The lateness at a quantile (0 to 1), in ms, as measured on two million tweets in the order in
/// which a collector received them (see `docs/timeline.md`), interpolated on the logarithm of ms.
pub(crate) fn tweet_lateness_ms(share: f64) -> f64 {
    let mut below = (0.0, 0.0_f64);
    for &(quantile, ms) in TWEETS {
        if share <= quantile {
            let part = (share - below.0) / (quantile - below.0);
            let low = below.1.ln_1p();
            return (low + (ms.ln_1p() - low) * part).exp_m1();
        }
        below = (quantile, ms);
    }
    below.1
}

/// The latest 1% count as the tail.
const TAIL_SHARE: f64 = 0.01;
const TWEETS: &[(f64, f64)] = &[
    (0.80, 0.0),
    (0.85, 7.0),
    (0.90, 17.0),
    (0.95, 38.0),
    (0.99, 160.0),
    (0.995, 515.0),
    (0.996_15, 1_000.0),
    (0.997_60, 2_000.0),
    (0.999, 3_070.0),
    (0.999_9, 4_590.0),
    (0.999_987, 5_000.0),
    (0.999_99, 5_130.0),
    (0.999_999_5, 10_000.0),
    (1.0, 13_100.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_million_draws_have_the_measured_quantiles() {
        let mut rng = Rng::stream(1, 0);
        let mut drawn: Vec<i64> = (0..500_000)
            .map(|_| Lateness::default().draw_ms(&mut rng))
            .collect();
        drawn.sort_unstable();
        let at = |share: f64| drawn[(share * 500_000.0) as usize] as f64;
        for (share, ms, slack) in [
            (0.5, 0.0, 0.0),
            (0.85, 7.0, 1.0),
            (0.90, 17.0, 1.0),
            (0.95, 38.0, 2.0),
            (0.99, 160.0, 10.0),
            (0.995, 515.0, 60.0),
            (0.999, 3_070.0, 150.0),
            (0.999_9, 4_590.0, 150.0),
        ] {
            assert!(
                (at(share) - ms).abs() <= slack,
                "p{}: {} ms, not {ms} ms",
                share * 100.0,
                at(share)
            );
        }
        let later = |ms: i64| drawn.iter().filter(|&&drawn| drawn > ms).count() as f64 / 5_000.0;
        assert!((later(1_000) - 0.385).abs() < 0.04);
        assert!((later(2_000) - 0.240).abs() < 0.03);
        assert!(drawn[499_999] <= 13_100);
    }

    #[test]
    fn the_tail_knob_multiplies_the_share_of_the_tail_only() {
        let boosted = Lateness {
            scale: 2.0,
            tail: 5.0,
        };
        assert!((boosted.quantile_ms(0.95) - 320.0).abs() < 1e-6);
        assert!((boosted.quantile_ms(1.0) - 26_200.0).abs() < 1e-6);
        assert_eq!(boosted.quantile_ms(0.5), 0.0);
        let all_tail = Lateness {
            scale: 1.0,
            tail: 1e9,
        };
        assert!((all_tail.quantile_ms(0.0) - 160.0).abs() < 1e-6);
        let no_tail = Lateness {
            scale: 1.0,
            tail: 0.0,
        };
        assert!((no_tail.quantile_ms(1.0) - 160.0).abs() < 1e-6);
        assert_eq!(Lateness::PUNCTUAL.quantile_ms(1.0), 0.0);
    }
}
