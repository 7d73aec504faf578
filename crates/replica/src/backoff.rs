use std::time::Duration;

/// The source of random numbers, as an argument.
pub type Random<'a> = dyn FnMut() -> u128 + Send + 'a;

/// The waits after failures: 1, 2, 4 … 60 s, each with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    failures: u32,
}

impl Backoff {
    /// The first wait is 1 s.
    pub const fn new() -> Self {
        Self::from_first(Duration::from_secs(1))
    }

    /// The waits with another first one.
    pub const fn from_first(first: Duration) -> Self {
        Self { first, failures: 0 }
    }

    /// Notes a failure. Returns the wait after it.
    pub fn fail(&mut self, random: &mut Random<'_>) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << self.failures.min(MAX_DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        jittered(doubled.min(MAX_WAIT), random())
    }

    /// The number of failures since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Notes a success: the next wait is the first one again.
    pub const fn succeed(&mut self) {
        self.failures = 0;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// A time of three quarters to five quarters of `time`, so that many devices do not return together.
pub fn jittered(time: Duration, random: u128) -> Duration {
    let thousandths = u32::try_from(random % 501).unwrap_or_default() + 750;
    time.saturating_mul(thousandths) / 1_000
}

/// 2^6 s are more than the longest wait.
const MAX_DOUBLINGS: u32 = 6;
const MAX_WAIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_begin_again_after_a_success() {
        let mut middle = || 250_u128;
        let mut backoff = Backoff::new();
        let waits: Vec<u64> = (0..8)
            .map(|_| backoff.fail(&mut middle).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.failures(), 8);
        backoff.succeed();
        assert_eq!(backoff.fail(&mut middle), Duration::from_secs(1));
    }

    #[test]
    fn jitter_is_a_quarter_at_most() {
        let time = Duration::from_secs(4);
        assert_eq!(jittered(time, 0), Duration::from_secs(3));
        assert_eq!(jittered(time, 500), Duration::from_secs(5));
        assert_eq!(jittered(time, 501), Duration::from_secs(3));
        assert!(jittered(time, u128::MAX) <= Duration::from_secs(5));
    }
}
