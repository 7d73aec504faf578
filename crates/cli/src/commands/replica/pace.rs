//! The pace of `replica watch`.

use std::time::Duration;

/// The shortest times between the starts of two rounds: 1 s, and 1, 2, 4 … 10 s while rounds bring nothing. None is longer than
/// the time between two rounds without a stream of events.
#[derive(Debug)]
pub struct Pace {
    next: Duration,
    max: Duration,
}

impl Pace {
    /// The pace of rounds that come every so often without a stream of events.
    pub fn new(every: Duration) -> Self {
        Self {
            next: MIN_PAUSE,
            max: every.clamp(MIN_PAUSE, MAX_PAUSE),
        }
    }

    /// The shortest time from the start of a round to that of the next one.
    pub fn pause_after(&mut self, has_changes: bool) -> Duration {
        if has_changes {
            self.next = MIN_PAUSE;
            return MIN_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause
    }
}

/// The shortest time between the starts of two rounds.
pub const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(every_s: u64, rounds: &[bool]) -> Vec<u64> {
        let mut pace = Pace::new(Duration::from_secs(every_s));
        let rounds = rounds.iter();
        rounds
            .map(|has_changes| pace.pause_after(*has_changes).as_secs())
            .collect()
    }

    #[test]
    fn rounds_that_bring_nothing_become_rarer_until_one_brings_something() {
        let rounds = [false, false, false, false, false, false, true, false, false];
        assert_eq!(pauses(30, &rounds), [1, 2, 4, 8, 10, 10, 1, 1, 2]);
        assert_eq!(pauses(3, &rounds), [1, 2, 3, 3, 3, 3, 1, 1, 2]);
        assert_eq!(pauses(1, &rounds), [1; 9]);
    }
}
