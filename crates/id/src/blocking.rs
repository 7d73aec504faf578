//! Waiting on a thread, without a lock.

use std::thread;
use std::time::{Duration, Instant};

use crate::policy::ClockPolicy;
use crate::refusal::{NotNow, Refusal};

/// A generator of IDs that a caller may have to wait for.
pub(crate) trait Source {
    /// The clock policy, and the length of a tick in µs.
    fn limits(&self) -> (ClockPolicy, u64);
    /// The clock's exact time in Unix µs.
    fn fresh_us(&self) -> i64;
}

/// Repeats `attempt` until it returns a value. A limit of the policy applies to the real time of
/// the whole call. A wait for the next tick has no such limit. It ends with a refusal if the clock
/// has stood still for longer than [`max_stopped`]. A thread that only loses ticks to other threads
/// continues.
#[cold]
#[inline(never)]
pub(crate) fn wait<S: Source, T>(
    mut source: S,
    first: NotNow,
    mut attempt: impl FnMut(&mut S) -> Result<T, NotNow>,
) -> Result<T, Refusal> {
    let (policy, tick_us) = source.limits();
    let mut not_now = first;
    let mut limited = Since::default();
    let mut stopped = Since::default();
    let mut shown_us = source.fresh_us();
    loop {
        let wait = match not_now {
            NotNow::Refused(refusal) => return Err(refusal),
            NotNow::Wait(wait) => wait,
        };
        if let (Some(refusal), ClockPolicy::Wait { at_most_ms }) = (wait.refusal(), policy)
            && limited.elapsed() > Duration::from_millis(at_most_ms.into())
        {
            return Err(refusal);
        }
        let before_us = std::mem::replace(&mut shown_us, source.fresh_us());
        if shown_us != before_us {
            stopped = Since::default();
        } else if stopped.elapsed() > max_stopped(policy, tick_us) {
            return Err(wait.refusal().unwrap_or(Refusal::SequenceExhausted));
        }
        if wait.us < SPIN_BELOW_US {
            core::hint::spin_loop();
        } else {
            thread::sleep(Duration::from_micros(wait.us.min(MAX_SLEEP_US)));
        }
        match attempt(&mut source) {
            Ok(value) => return Ok(value),
            Err(again) => not_now = again,
        }
    }
}

/// The longest time for which a clock may stand still during a wait for a tick.
fn max_stopped(policy: ClockPolicy, tick_us: u64) -> Duration {
    let ticks = Duration::from_micros(2 * tick_us) + STOPPED;
    match policy {
        ClockPolicy::Refuse => ticks,
        ClockPolicy::Wait { at_most_ms } => ticks.max(Duration::from_millis(at_most_ms.into())),
    }
}

/// A stopwatch that starts when it is first read.
#[derive(Default)]
struct Since(Option<Instant>);

impl Since {
    #[expect(
        clippy::disallowed_methods,
        reason = "the module behind the feature `std` that waits"
    )]
    fn elapsed(&mut self) -> Duration {
        self.0.get_or_insert_with(Instant::now).elapsed()
    }
}

/// Below this, falling asleep takes longer than the wait.
const SPIN_BELOW_US: u64 = 50;
/// The interval between checks, as clocks step and windows are extended during a wait.
const MAX_SLEEP_US: u64 = 10_000;
/// The delay beyond two ticks that a busy machine may cause to a clock's thread.
const STOPPED: Duration = Duration::from_millis(100);
