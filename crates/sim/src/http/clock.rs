//! Where the shell takes its time from.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use jiff::Timestamp;

/// The clock of a simulated server.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    Real,
    /// One that its owner sets. Stalls and delays still last real time.
    Set(SetClock),
}

impl Clock {
    /// The time, Unix ms.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::Real => Timestamp::now().as_millisecond(),
            Self::Set(clock) => clock.now_ms(),
        }
    }
}

/// A clock that stays at its time until it is set; clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct SetClock(Arc<AtomicI64>);

impl SetClock {
    /// A clock that shows a time, Unix ms.
    pub fn new(now_ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Sets the time, Unix ms.
    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// The time, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
