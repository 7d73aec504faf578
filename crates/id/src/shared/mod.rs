mod lane;
#[cfg(test)]
mod model;

pub use lane::Lane;

use crate::atomic::{AtomicU64, Ordering};
use crate::batch::Batch;
use crate::clock::Clock;
use crate::grant::Grant;
use crate::policy::ClockPolicy;
use crate::refusal::{NotNow, StartError};
use crate::rules::{RETIRED, Rules};
use crate::shared_methods::shared_methods;
use crate::window::{Retired, Window};

/// Makes IDs for many threads, without a lock. Of two calls one after the other, on whatever
/// threads, the later gets the larger ID.
///
/// In all else it is as a [`Generator`](crate::Generator).
#[derive(Debug)]
pub struct SharedGenerator<C> {
    state: State,
    rules: Rules,
    clock: C,
}

/// The next count, on cache lines of its own: threads take it from each other all the time.
#[derive(Debug)]
#[repr(align(128))]
struct State {
    next: AtomicU64,
}

impl<C: Clock> SharedGenerator<C> {
    /// A generator that makes the window's IDs.
    pub fn new(window: Window, clock: C, policy: ClockPolicy) -> Result<Self, StartError> {
        let rules = Rules::new(window, clock.fresh_us(), policy)?;
        Ok(Self {
            state: State {
                next: AtomicU64::new(rules.first_count),
            },
            rules,
            clock,
        })
    }

    /// An ID, if there is one at this moment. Never blocks.
    #[inline]
    pub fn try_next(&self) -> Result<u64, NotNow> {
        let plan = &self.rules.plan;
        let mut next = self.state.next.load(Ordering::Acquire);
        loop {
            let in_run = !plan.is_check(next) && plan.is_within(plan.tick_of(next), &self.clock);
            if !in_run || next == RETIRED || self.rules.origin.is_elsewhere() {
                return self.take(1).map(|grant| plan.raw(grant.first));
            }
            match self.advance(next, next + 1) {
                Ok(()) => return Ok(plan.raw(next)),
                Err(seen) => next = seen,
            }
        }
    }

    /// Up to `length` IDs of this tick at once, and at least one.
    pub fn reserve(&self, length: usize) -> Result<Batch, NotNow> {
        let grant = self.take(length as u64)?;
        Ok(self.rules.batch(&grant))
    }

    /// Ends the generator for all threads: from then on it refuses. `None` if it had ended
    /// before. In a forked process the proof ends no record early.
    pub fn retire(&self) -> Option<Retired> {
        let next = self.state.next.swap(RETIRED, Ordering::AcqRel);
        (next != RETIRED).then(|| self.rules.retired(next))
    }

    #[cold]
    #[inline(never)]
    fn take(&self, length: u64) -> Result<Grant, NotNow> {
        let mut next = self.state.next.load(Ordering::Acquire);
        loop {
            // Read after the state: no thread has left a tick that this time is not yet in,
            // unless the clock has stepped back.
            let now_us = self.clock.fresh_us();
            let grant = self.rules.decide(next, now_us, length)?;
            match self.advance(next, grant.first + grant.length) {
                Ok(()) => return Ok(grant),
                Err(seen) => next = seen,
            }
        }
    }

    /// Moves the state from one count to another, or says which it was instead. Another thread
    /// that was faster is left alone for a moment, since it is likely to want the next ID too:
    /// two threads in turns are slower than each of them in a row.
    #[inline]
    fn advance(&self, from: u64, to: u64) -> Result<(), u64> {
        let swapped =
            self.state
                .next
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        match swapped {
            Ok(_) => Ok(()),
            Err(_) => {
                crate::atomic::pause();
                Err(self.state.next.load(Ordering::Acquire))
            }
        }
    }
}

shared_methods!(SharedGenerator);
