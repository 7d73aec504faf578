//! A seeded random number generator.

use serde::{Deserialize, Serialize};

/// A seeded random number generator (SplitMix64: Steele, Lea & Flood, OOPSLA 2014). Its state can
/// be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x6a09_e667_f3bc_c909)
    }

    /// Mixes a number into the state.
    pub fn stir(&mut self, entropy: u64) {
        self.0 = self.0.wrapping_add(entropy);
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number above 0 and below 1.
    pub fn share(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A number between `low` and `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// A normally distributed number with variance 1 (Box & Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.share().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// A Poisson-distributed count with this mean (Knuth's method for small means, the normal
    /// approximation for large ones).
    pub fn times(&mut self, expected: f64) -> u32 {
        if expected > 50.0 {
            return (expected + expected.sqrt() * self.normal())
                .round()
                .max(0.0) as u32;
        }
        let (limit, mut product, mut times) = ((-expected).exp(), self.share(), 0);
        while product > limit {
            product *= self.share();
            times += 1;
        }
        times
    }
}
