//! Clocks for generators.
//!
//! A generator takes its clock as an argument. [`ManualClock`] is for tests and simulations. With
//! the feature `std`, `SystemClock` reads the system's time at each use. `TickedClock` also follows
//! the system's time, at a tenth of the cost.

mod manual;
#[cfg(feature = "std")]
mod system;
#[cfg(feature = "std")]
mod ticked;

pub use manual::ManualClock;
#[cfg(feature = "std")]
pub use system::SystemClock;
#[cfg(feature = "std")]
pub use ticked::TickedClock;

use alloc::sync::Arc;

/// A source of time, in Unix µs. It may step forward or back.
pub trait Clock {
    /// The time, cheaply: possibly a little late.
    ///
    /// Generators use it to check whether the current tick may be over, and never to enter a new
    /// one.
    fn now_us(&self) -> i64;

    /// [`now_us`](Self::now_us) in Unix ms, rounded down. Cheaper for a clock that stores ms.
    fn now_ms(&self) -> i64 {
        self.now_us().div_euclid(1_000)
    }

    /// The exact time. Generators call it before they enter a tick, refuse or wait. They also call
    /// it now and then within a tick, so that a stopped cheap time does no harm.
    fn fresh_us(&self) -> i64 {
        self.now_us()
    }

    /// The exact time, for rare callers that make no IDs, such as a keeper. A clock that pauses
    /// when unused stays paused.
    fn exact_us(&self) -> i64 {
        self.fresh_us()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now_us(&self) -> i64 {
        (**self).now_us()
    }

    fn now_ms(&self) -> i64 {
        (**self).now_ms()
    }

    fn fresh_us(&self) -> i64 {
        (**self).fresh_us()
    }

    fn exact_us(&self) -> i64 {
        (**self).exact_us()
    }
}
