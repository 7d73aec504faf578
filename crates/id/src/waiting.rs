//! Waiting on a Tokio runtime.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::refusal::NotNow;

/// Repeats `attempt` until it returns a value, or the deadline comes; the error is then
/// [`NotNow::Wait`]. Nothing is awaited after a success, so a cancelled future has taken nothing.
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
        // The timer sleeps up to 1 ms longer than asked, and never shorter.
        let pause_us = wait.us.min(MAX_SLEEP_US).saturating_sub(TIMER_US).max(1);
        sleep_until(deadline.min(now + Duration::from_micros(pause_us))).await;
    }
}

/// Yields to the runtime's other tasks once.
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

/// Below this, the timer would take many times as long as the wait.
const YIELD_BELOW_US: u64 = 50;
/// The number of yields of a call before it sleeps, for example when a clock has stopped. In an
/// idle runtime they take about as long as the longest wait with yields.
const MAX_TURNS: u32 = 256;
/// The resolution of Tokio's timer.
const TIMER_US: u64 = 1_000;
/// The interval between checks, as clocks step and windows are extended during a wait.
const MAX_SLEEP_US: u64 = 10_000;
