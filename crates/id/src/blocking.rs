//! Waiting on a thread, without a lock.

use std::thread;
use std::time::{Duration, Instant};

use crate::policy::ClockPolicy;
use crate::refusal::{NotNow, Refusal};

/// Tries until there is something to return. What the policy limits is limited in real time,
/// over the whole call.
#[cold]
#[inline(never)]
#[expect(
    clippy::disallowed_methods,
    reason = "the module behind the feature `std` that waits"
)]
pub(crate) fn wait<T>(
    policy: ClockPolicy,
    first: NotNow,
    mut attempt: impl FnMut() -> Result<T, NotNow>,
) -> Result<T, Refusal> {
    let mut not_now = first;
    let mut limited_since: Option<Instant> = None;
    loop {
        let wait = match not_now {
            NotNow::Refused(refusal) => return Err(refusal),
            NotNow::Wait(wait) => wait,
        };
        if let (Some(refusal), ClockPolicy::Wait { at_most_ms }) = (wait.refusal(), policy) {
            let since = *limited_since.get_or_insert_with(Instant::now);
            if since.elapsed() > Duration::from_millis(at_most_ms.into()) {
                return Err(refusal);
            }
        }
        if wait.us < SPIN_BELOW_US {
            core::hint::spin_loop();
        } else {
            thread::sleep(Duration::from_micros(wait.us.min(LONGEST_SLEEP_US)));
        }
        match attempt() {
            Ok(value) => return Ok(value),
            Err(again) => not_now = again,
        }
    }
}

/// Below this, going to sleep takes longer than the wait.
const SPIN_BELOW_US: u64 = 50;
/// Clocks step and windows are extended during a wait: look again after this.
const LONGEST_SLEEP_US: u64 = 10_000;
