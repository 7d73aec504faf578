//! Waiting on a thread, without a lock.

use std::thread;
use std::time::{Duration, Instant};

use crate::policy::ClockPolicy;
use crate::refusal::{NotNow, Refusal};

/// What makes IDs, and may have to be waited for.
pub(crate) trait Source {
    /// Its policy, and how long a tick is in µs.
    fn limits(&self) -> (ClockPolicy, u64);
    /// Its clock's exact time in Unix µs.
    fn fresh_us(&self) -> i64;
}

/// Tries until there is something to return. What the policy limits is limited in real time,
/// over the whole call. What it does not limit, the wait for a next tick, ends when the clock has
/// stood still for longer than it may: a thread that only loses each tick to others goes on.
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

/// For how long a clock may show one time while a tick is waited for.
fn max_stopped(policy: ClockPolicy, tick_us: u64) -> Duration {
    let ticks = Duration::from_micros(2 * tick_us) + STOPPED;
    match policy {
        ClockPolicy::Refuse => ticks,
        ClockPolicy::Wait { at_most_ms } => ticks.max(Duration::from_millis(at_most_ms.into())),
    }
}

/// A stopwatch that starts when it is first looked at.
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

/// Below this, going to sleep takes longer than the wait.
const SPIN_BELOW_US: u64 = 50;
/// Clocks step and windows are extended during a wait: look again after this.
const MAX_SLEEP_US: u64 = 10_000;
/// Beyond two ticks: what a busy machine may keep a clock's thread from.
const STOPPED: Duration = Duration::from_millis(100);
