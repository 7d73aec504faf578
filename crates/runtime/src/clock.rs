//! The local clock. Only read here; machines take the time as an argument.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

/// The local time, Unix ms.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// A random number for jitter.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}
