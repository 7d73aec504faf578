//! The local clocks. Only this module reads them; machines take the time as an argument.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use driftline_core::clock::ClockReading;

/// The local time in Unix ms.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// The wall clock and the monotonic clock, read together, so that steps of the wall clock can be
/// noticed.
pub fn read_clocks() -> ClockReading {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ClockReading {
        steady_ms: BEGUN.elapsed().as_millis() as i64,
        wall_ms: now_ms(),
    }
}

/// The monotonic clock, in ms since some moment of this process. For waits in memory, which no step
/// of the wall clock may lengthen.
pub fn steady_ms() -> i64 {
    read_clocks().steady_ms
}

/// A random number for jitter.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}
