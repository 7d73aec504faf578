use alloc::sync::Arc;
use core::sync::atomic::{AtomicI64, Ordering};

use crate::clock::Clock;

/// A clock that stands still until it is set. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    us: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that shows the given Unix ms.
    pub fn at_ms(ms: i64) -> Self {
        Self::at_us(ms * 1_000)
    }

    /// A clock that shows the given Unix µs.
    pub fn at_us(us: i64) -> Self {
        Self {
            us: Arc::new(AtomicI64::new(us)),
        }
    }

    /// Sets the clock to the given Unix µs, forward or back.
    pub fn set_us(&self, us: i64) {
        self.us.store(us, Ordering::SeqCst);
    }

    /// Moves the clock by `us` µs, back if negative.
    pub fn advance_us(&self, us: i64) {
        self.us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        self.us.load(Ordering::SeqCst)
    }
}
