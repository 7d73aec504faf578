//! Random numbers under a seed.

use rand::{Rng as _, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rng(ChaCha8Rng);

impl Rng {
    /// The stream of that number under a seed; streams are independent, so a
    /// knob that draws from one does not shift another.
    pub(crate) fn stream(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// A number from 0 (included) to 1 (excluded).
    pub(crate) fn share(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Whether something happens that happens in this share of cases. Draws
    /// exactly once whatever the share.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// A whole number between two bounds, both included; the lower one if
    /// they are swapped. Draws exactly once.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.saturating_sub(low).max(0) as f64 + 1.0;
        low.saturating_add((self.share() * width) as i64)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Mixes two numbers into one (SplitMix64's finaliser).
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A text's 64-bit FNV-1a hash: the same on every platform and release.
pub fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
