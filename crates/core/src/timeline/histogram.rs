//! A small histogram of durations, for estimates that are kept in the store.

use serde::{Deserialize, Serialize};

/// Counts of durations in buckets that grow by a quarter of a power of two.
///
/// Old counts fade: when the total passes [`Histogram::FADE_AT`], all are
/// halved, so that an estimate follows a source that changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
}

impl Histogram {
    /// The total at which counts are halved.
    pub const FADE_AT: u64 = 200_000;

    /// Counts one duration, ms; a negative one counts as zero.
    pub fn add(&mut self, ms: i64) {
        let index = bucket(ms);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
        self.total += 1;
        if self.total >= Self::FADE_AT {
            for count in &mut self.counts {
                *count /= 2;
            }
            self.total = self.counts.iter().map(|&count| u64::from(count)).sum();
        }
    }

    /// How many durations it holds, faded ones halved.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// A bound that this share of the durations does not pass, ms: the upper
    /// edge of the bucket where the quantile lies. `None` while empty.
    pub fn quantile_ms(&self, share: f64) -> Option<i64> {
        if self.total == 0 {
            return None;
        }
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= wanted {
                return Some(upper_edge_ms(index));
            }
        }
        Some(upper_edge_ms(self.counts.len().saturating_sub(1)))
    }

    /// The buckets that hold something: upper edge in ms, and count.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, &count)| (upper_edge_ms(index), count))
    }
}

/// Bucket 0 holds zero, buckets 1 to 8 hold 1 to 8 ms, then four a power of two.
fn bucket(ms: i64) -> usize {
    let ms = ms.clamp(0, 1 << 40) as u64;
    if ms <= 8 {
        return ms as usize;
    }
    let above = ms - 1;
    let power = 63 - above.leading_zeros();
    let quarter = (above >> (power - 2)) & 3;
    (9 + (power - 3) * 4 + quarter as u32) as usize
}

fn upper_edge_ms(index: usize) -> i64 {
    if index <= 8 {
        return index as i64;
    }
    let (power, quarter) = ((index - 9) / 4 + 3, (index - 9) % 4);
    (1_i64 << power) + ((quarter as i64 + 1) << (power - 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_edge_bounds_its_bucket_within_a_quarter(ms in 0i64..100_000_000) {
            let edge = upper_edge_ms(bucket(ms));
            prop_assert!(edge >= ms, "{edge} < {ms}");
            prop_assert!(edge <= ms + ms / 4 + 1, "{edge} far above {ms}");
            prop_assert!(bucket(edge) == bucket(ms));
        }
    }

    #[test]
    fn quantiles_are_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_ms(0.5), None);
        for ms in 1..=1000 {
            histogram.add(ms);
        }
        let median = histogram.quantile_ms(0.5).expect("not empty");
        assert!((500..=640).contains(&median), "{median}");
        assert!(histogram.quantile_ms(1.0).expect("not empty") >= 1000);
    }

    #[test]
    fn old_counts_fade() {
        let mut histogram = Histogram::default();
        for _ in 0..Histogram::FADE_AT {
            histogram.add(5);
        }
        assert_eq!(histogram.total(), Histogram::FADE_AT / 2);
    }
}
