//! Waiting on a Tokio runtime.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::refusal::NotNow;

/// Tries until there is something to return, or the deadline comes: then the error is
/// [`NotNow::Wait`]. Nothing is awaited after a success, so that a
/// cancelled future has taken nothing.
pub(crate) async fn wait<T>(
    deadline: Instant,
    mut attempt: impl FnMut() -> Result<T, NotNow>,
) -> Result<T, NotNow> {
    let mut turns = 0;
    loop {
        let wait = match attempt() {
            Ok(value) => return Ok(value),
            Err(NotNow::Wait(wait)) => wait,
            refused => return refused,
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(NotNow::Wait(wait));
        }
        if wait.us < YIELD_BELOW_US && turns < MAX_TURNS {
            turns += 1;
            give_turn().await;
            continue;
        }
        // The timer sleeps for up to 1 ms longer than it is asked to, and never for less.
        let pause_us = wait.us.min(MAX_SLEEP_US).saturating_sub(TIMER_US).max(1);
        sleep_until(deadline.min(now + Duration::from_micros(pause_us))).await;
    }
}

/// Lets the runtime's other tasks go first, once.
async fn give_turn() {
    let mut given = false;
    poll_fn(|context| {
        if given {
            return Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Below this the timer would take many times as long as the wait.
const YIELD_BELOW_US: u64 = 50;
/// What one call gives before it sleeps all the same, as when a clock has stopped: of an
/// otherwise idle runtime this takes about as long as the longest wait that is yielded for.
const MAX_TURNS: u32 = 256;
/// The resolution of Tokio's timer.
const TIMER_US: u64 = 1_000;
/// Clocks step and windows are extended during a wait: look again after this.
const MAX_SLEEP_US: u64 = 10_000;
