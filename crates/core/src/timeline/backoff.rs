//! Delays after failures.

/// The delay before the next attempt after this number of consecutive failures, in ms. It is
/// `base_ms` after each of the first two, because most faults are short. Then it doubles up to five
/// minutes. `random` (any random number) subtracts up to half, so that sources that failed together
/// do not retry together.
pub fn backoff_ms(base_ms: i64, failures: u32, random: u64) -> i64 {
    let whole_ms = base_ms
        .clamp(MIN_MS, MAX_MS)
        .saturating_mul(1 << failures.saturating_sub(2).min(16))
        .min(MAX_MS);
    let half_ms = whole_ms / 2;
    whole_ms - (random % (half_ms as u64 + 1)) as i64
}

const MIN_MS: i64 = 100;
const MAX_MS: i64 = 300_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes_and_jitter_takes_at_most_half() {
        assert_eq!(backoff_ms(1_000, 1, 0), 1_000);
        assert_eq!(backoff_ms(1_000, 2, 0), 1_000);
        assert_eq!(backoff_ms(1_000, 5, 0), 8_000);
        assert_eq!(backoff_ms(1_000, 60, 0), 300_000);
        for random in [1, 77, u64::MAX] {
            assert!((4_000..=8_000).contains(&backoff_ms(1_000, 5, random)));
        }
    }
}
