//! Clocks that step or are wrong: waits that no clock can lengthen, and steps of the wall clock.

use serde::{Deserialize, Serialize};

/// A wait that is stored with its start and its length. It never lasts longer than its length, even
/// if the wall clock is set afterwards. The default value is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Deadline {
    /// The start of the wait, in Unix ms by the wall clock of that moment.
    from_ms: i64,
    /// The length of the wait in ms.
    for_ms: i64,
}

impl Deadline {
    /// A wait of `for_ms` from `now_ms`, which is in Unix ms.
    pub fn after(now_ms: i64, for_ms: i64) -> Self {
        Self {
            from_ms: now_ms,
            for_ms: for_ms.max(0),
        }
    }

    /// True if the wait is over at `now_ms`, in Unix ms.
    pub fn is_over(self, now_ms: i64) -> bool {
        self.until_ms() <= now_ms
    }

    /// The end of the wait in Unix ms. It is only correct after a call of [`Deadline::clamp`] with
    /// the present time.
    pub fn until_ms(self) -> i64 {
        self.from_ms.saturating_add(self.for_ms)
    }

    /// Moves a start in the future to `now_ms`, in Unix ms. Such a start was read from a clock that
    /// has since been set back, so the wait starts again now.
    pub fn clamp(&mut self, now_ms: i64) {
        self.from_ms = self.from_ms.min(now_ms);
    }

    /// The start in Unix ms, for moves with a step of the wall clock.
    pub fn from_mut(&mut self) -> &mut i64 {
        &mut self.from_ms
    }
}

/// Both clocks of a process, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock in Unix ms. It can step forward and back.
    pub wall_ms: i64,
    /// The monotonic clock, in ms since some moment of the process. It never steps.
    pub steady_ms: i64,
}

/// Detects steps of the wall clock, by comparison with the monotonic clock between two readings.
#[derive(Debug, Clone, Copy)]
pub struct ClockWatch(ClockReading);

impl ClockWatch {
    /// Starts at this reading.
    pub fn new(reading: ClockReading) -> Self {
        Self(reading)
    }

    /// The step of the wall clock since the last reading, in ms: positive if it was set forward, 0
    /// if it was not set. Differences below [`MIN_STEP_MS`] count as drift. A suspension of the
    /// machine counts as a step, because the monotonic clock stands still then.
    pub fn step_ms(&mut self, reading: ClockReading) -> i64 {
        let before = std::mem::replace(&mut self.0, reading);
        let wall_ms = reading.wall_ms.saturating_sub(before.wall_ms);
        let steady_ms = reading.steady_ms.saturating_sub(before.steady_ms);
        let step_ms = wall_ms.saturating_sub(steady_ms);
        match step_ms.saturating_abs() > MIN_STEP_MS {
            true => step_ms,
            false => 0,
        }
    }
}

/// True if a stored past time comes from a wrong clock, because it is further ahead than the clocks
/// of processes with one store may differ. Both in Unix ms.
pub fn is_ahead(at_ms: i64, now_ms: i64) -> bool {
    at_ms > now_ms.saturating_add(MAX_SKEW_MS)
}

/// True if an answer requested at `asked_ms` is older than one of `known_ms`. False if a wrong
/// clock has dated `known_ms` ahead. All in Unix ms.
pub fn is_older(asked_ms: i64, known_ms: i64, now_ms: i64) -> bool {
    asked_ms < known_ms && !is_ahead(known_ms, now_ms)
}

/// The largest difference between the clocks of processes with one store, in ms.
pub const MAX_SKEW_MS: i64 = 60_000;

/// Smaller differences between the clocks are drift, or a pause between the two readings, in ms.
pub const MIN_STEP_MS: i64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn a_wait_never_lasts_longer_than_its_length() {
        let mut wait = Deadline::after(NOW_MS + 2 * DAY_MS, 60_000);
        // The clock was two days ahead when the wait was set.
        wait.clamp(NOW_MS);
        assert!(!wait.is_over(NOW_MS + 59_999));
        assert!(wait.is_over(NOW_MS + 60_000));
        // A second call does not restart the wait.
        wait.clamp(NOW_MS + 30_000);
        assert_eq!(wait.until_ms(), NOW_MS + 60_000);
    }

    #[test]
    fn a_wait_that_was_never_set_is_over() {
        assert!(Deadline::default().is_over(0));
        assert!(Deadline::after(NOW_MS, -5).is_over(NOW_MS));
    }

    #[test]
    fn only_steps_are_noticed() {
        let reading = |wall_ms, steady_ms| ClockReading { wall_ms, steady_ms };
        let mut watch = ClockWatch::new(reading(NOW_MS, 0));
        assert_eq!(watch.step_ms(reading(NOW_MS + 5_000, 5_000)), 0);
        assert_eq!(watch.step_ms(reading(NOW_MS + 10_900, 10_000)), 0, "drift");
        let ahead_ms = NOW_MS + 10_900 + 1_200_000;
        assert_eq!(watch.step_ms(reading(ahead_ms + 8_000, 18_000)), 1_200_000);
        assert_eq!(watch.step_ms(reading(ahead_ms + 9_000, 19_000)), 0);
        assert_eq!(
            watch.step_ms(reading(ahead_ms - 1_190_000, 20_000)),
            -1_200_000
        );
    }
}
