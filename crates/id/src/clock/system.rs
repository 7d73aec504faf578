use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::Clock;

/// The system's time, read at each use.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the module behind the feature `std` that reads the time"
    )]
    fn now_us(&self) -> i64 {
        let micros = |duration: std::time::Duration| {
            duration.as_secs() as i64 * 1_000_000 + i64::from(duration.subsec_micros())
        };
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(error) => -micros(error.duration()),
        }
    }
}
