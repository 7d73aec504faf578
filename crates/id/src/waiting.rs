//! Waiting on a Tokio runtime.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::refusal::{NotNow, Refusal, Wait};

/// No ID before the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineError {
    /// The deadline came first.
    Deadline(Wait),
    /// The generator refuses.
    Refused(Refusal),
}

/// Tries until there is something to return. Nothing is awaited after a success, so that a
/// cancelled future has taken nothing.
pub(crate) async fn wait<T>(
    deadline: Instant,
    mut attempt: impl FnMut() -> Result<T, NotNow>,
) -> Result<T, DeadlineError> {
    loop {
        let wait = match attempt() {
            Ok(value) => return Ok(value),
            Err(NotNow::Refused(refusal)) => return Err(DeadlineError::Refused(refusal)),
            Err(NotNow::Wait(wait)) => wait,
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(DeadlineError::Deadline(wait));
        }
        let pause = Duration::from_micros(wait.us.min(LONGEST_SLEEP_US));
        sleep_until(deadline.min(now + pause)).await;
    }
}

impl fmt::Display for DeadlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline(wait) => write!(f, "no ID before the deadline: {wait}"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl Error for DeadlineError {}

/// Clocks step and windows are extended during a wait: look again after this.
const LONGEST_SLEEP_US: u64 = 10_000;
