//! The atomics of the shared generator. Unit tests are loom models, which replace them.

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Lets another thread go first, for a moment: 64 of the processor's pauses, each of which takes
/// from a few to more than a hundred cycles, by its make.
#[cold]
pub(crate) fn pause() {
    #[cfg(not(test))]
    for _ in 0..PAUSES {
        core::hint::spin_loop();
    }
    #[cfg(test)]
    loom::hint::spin_loop();
}

/// Measured on one machine, with two threads that do nothing but make IDs: from 45 ns an ID
/// without pauses to 15 ns; more of them gained nothing.
#[cfg(not(test))]
const PAUSES: u32 = 64;
