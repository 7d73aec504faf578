mod lane;
#[cfg(test)]
mod model;

pub use lane::Lane;

use crate::atomic::{AtomicU64, Ordering};
use crate::batch::Batch;
use crate::clock::Clock;
use crate::node::Node;
use crate::policy::{ClockPolicy, SequenceStart};
use crate::refusal::{NotNow, StartError};
use crate::rules::{Grant, RETIRED, Rules};
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

    /// Starts the sequence of each tick elsewhere than at 0.
    #[must_use]
    pub fn with_sequence_start(mut self, start: SequenceStart) -> Self {
        self.rules.start = start;
        self
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

    /// Fills the slice from its beginning, and returns how far: less than all of it where the tick
    /// has fewer. An error only where there is not even one.
    pub fn fill(&self, ids: &mut [u64]) -> Result<usize, NotNow> {
        if ids.is_empty() {
            return Ok(0);
        }
        let batch = self.reserve(ids.len())?;
        let slots = ids.iter_mut().zip(batch);
        Ok(slots.map(|(slot, raw)| *slot = raw).count())
    }

    /// The node and, through it, the layout.
    pub fn node(&self) -> &Node {
        self.rules.window.node()
    }

    /// The end of the window in Unix µs, as extended so far.
    pub fn window_until_us(&self) -> i64 {
        self.rules.window.until_us()
    }

    /// The clock policy.
    pub fn policy(&self) -> ClockPolicy {
        self.rules.policy
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

#[cfg(feature = "std")]
impl<C: Clock> SharedGenerator<C> {
    /// An ID, after a wait if need be: for the next tick, or as long as the policy allows. Many
    /// threads wait side by side, and none while holding anything.
    #[inline]
    pub fn next_id(&self) -> Result<u64, crate::Refusal> {
        match self.try_next() {
            Ok(raw) => Ok(raw),
            Err(not_now) => crate::blocking::wait(&mut &*self, not_now, |ids| ids.try_next()),
        }
    }

    /// Up to `length` IDs of one tick, after a wait if need be.
    pub fn reserve_waiting(&self, length: usize) -> Result<Batch, crate::Refusal> {
        match self.reserve(length) {
            Ok(batch) => Ok(batch),
            Err(not_now) => crate::blocking::wait(&mut &*self, not_now, |ids| ids.reserve(length)),
        }
    }
}

#[cfg(feature = "std")]
impl<C: Clock> crate::blocking::Source for &SharedGenerator<C> {
    fn limits(&self) -> (ClockPolicy, u64) {
        (self.rules.policy, self.rules.plan.unit_us)
    }

    fn fresh_us(&self) -> i64 {
        self.clock.fresh_us()
    }
}

#[cfg(feature = "tokio")]
impl<C: Clock> SharedGenerator<C> {
    /// An ID before the deadline, on a Tokio runtime with its timer enabled; [`NotNow::Wait`] if
    /// the deadline comes first. Cancel-safe: an ID is taken only when it is returned.
    ///
    /// The runtime's timer counts whole ms, so that on a busy runtime a wait may miss a tick.
    /// Where more IDs are asked for than the layout has, take many of a tick at once, by
    /// [`reserve_before`](Self::reserve_before). Waits below 50 µs give way to the runtime's other
    /// tasks instead of sleeping.
    pub async fn next_before(&self, deadline: tokio::time::Instant) -> Result<u64, NotNow> {
        crate::waiting::wait(deadline, || self.try_next()).await
    }

    /// Up to `length` IDs of one tick before the deadline, as
    /// [`next_before`](Self::next_before). Cancel-safe.
    pub async fn reserve_before(
        &self,
        length: usize,
        deadline: tokio::time::Instant,
    ) -> Result<Batch, NotNow> {
        crate::waiting::wait(deadline, || self.reserve(length)).await
    }
}
