use core::error::Error;
use core::fmt;

use crate::span::TimeError;

/// The reason for having no ID at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// An ID will be available soon.
    #[error("{0}")]
    Wait(Wait),
    /// Waiting does not help, or the policy forbids it.
    #[error("{0}")]
    Refused(Refusal),
}

/// The duration of a wait for an ID, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The µs until the next attempt. An estimate, as clocks step and windows are extended.
    pub us: u64,
    /// The reason for the wait: [`Refusal::SequenceExhausted`] for the next tick, or the obstacle
    /// of the clock or the window.
    pub reason: Refusal,
}

/// The reason for a generator's refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The clock is behind the last ID's time.
    #[error("the clock is {behind_ms} ms behind the last ID's time")]
    ClockBehind {
        /// The difference in ms, rounded up.
        behind_ms: u64,
    },
    /// The clock is before the window's beginning. The node's last holder may have used the times
    /// before that.
    #[error("the clock is {behind_ms} ms before the window of this node begins")]
    WindowAhead {
        /// The difference in ms, rounded up.
        behind_ms: u64,
    },
    /// The clock is past the window's end, which has not been extended yet. If it never is, its
    /// keeper has ended or cannot record.
    #[error(
        "the window of this node ended at Unix us {until_us} and was not extended; \
         its keeper must be alive, and able to record"
    )]
    WindowEnded {
        /// The end, in Unix µs.
        until_us: i64,
    },
    /// The tick has no IDs left. As a refusal, it also means that the clock has stopped: a blocking
    /// call has waited for two ticks and 100 ms, or longer if the policy allows that.
    #[error("the tick has no IDs left, and the clock has stopped; start it")]
    SequenceExhausted,
    /// The layout cannot express the clock's time.
    #[error("{0}")]
    Time(TimeError),
    /// The generator was retired.
    #[error("the generator was retired; start another")]
    Retired,
    /// The generator belongs to the process that this one was forked from.
    #[error(
        "the generator belongs to the process that this one was forked from; \
         start one with a node of its own"
    )]
    Forked,
}

/// The reason why a generator cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The layout cannot express the clock's time.
    #[error("{0}")]
    Time(TimeError),
    /// The C library refused to register the handler that notices forks.
    #[error("the handler that notices forks could not be registered; free some memory")]
    ForkGuard,
}

impl Wait {
    /// The refusal for a caller that does not wait. `None` for an exhausted sequence, for which
    /// every policy waits while the clock moves.
    pub fn refusal(self) -> Option<Refusal> {
        Some(self.reason).filter(|reason| *reason != Refusal::SequenceExhausted)
    }
}

impl From<Refusal> for NotNow {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal() {
            Some(refusal) => write!(f, "{refusal}; ")?,
            None => write!(f, "the tick has no IDs left; ")?,
        }
        write!(f, "try again in {} us", self.us)
    }
}

impl Error for Wait {}
