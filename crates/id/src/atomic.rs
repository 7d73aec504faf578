//! The atomics of the shared generator. Unit tests are loom models, which replace them.

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Lets another thread go first, for about a microsecond.
#[cold]
pub(crate) fn pause() {
    #[cfg(not(test))]
    for _ in 0..PAUSES {
        core::hint::spin_loop();
    }
    #[cfg(test)]
    loom::hint::spin_loop();
}

/// Measured with two threads that do nothing but make IDs: from 45 ns an ID without pauses to
/// 15 ns; more of them gain nothing.
#[cfg(not(test))]
const PAUSES: u32 = 64;
