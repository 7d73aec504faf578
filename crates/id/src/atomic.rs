//! The atomics of the shared generator. Unit tests are loom models, which replace them.

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Pauses for a moment so that another thread can proceed. Spins for 64 processor pauses, each of
/// which takes from a few to more than a hundred cycles, depending on the processor.
#[cold]
pub(crate) fn pause() {
    #[cfg(not(test))]
    for _ in 0..PAUSES {
        core::hint::spin_loop();
    }
    #[cfg(test)]
    loom::hint::spin_loop();
}

/// Measured on one machine, with two threads that only make IDs. An ID took 45 ns without pauses
/// and 15 ns with 64. More pauses gained nothing.
#[cfg(not(test))]
const PAUSES: u32 = 64;
