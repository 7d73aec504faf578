use core::error::Error;
use core::fmt;

use crate::span::TimeError;

/// Why there is no ID at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// There will be one in a while.
    #[error("{0}")]
    Wait(Wait),
    /// Waiting does not help, or the policy forbids it.
    #[error("{0}")]
    Refused(Refusal),
}

/// How long to wait for an ID, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// After how many µs to try again; an estimate, as clocks step and windows are extended.
    pub us: u64,
    /// What is waited for: [`Refusal::SequenceExhausted`] for the next tick, or what the clock or
    /// the window does not allow.
    pub reason: Refusal,
}

/// Why a generator refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The clock is behind the last ID's time.
    #[error("the clock is {behind_ms} ms behind the last ID's time")]
    ClockBehind {
        /// By how many ms, rounded up.
        behind_ms: u64,
    },
    /// The clock is before the window's beginning: the time up to there may have been used by
    /// the node's last holder.
    #[error("the clock is {behind_ms} ms before the window of this node begins")]
    WindowAhead {
        /// By how many ms, rounded up.
        behind_ms: u64,
    },
    /// The clock is past the window's end, which has not been extended yet; if it never is, its
    /// keeper is gone, or cannot record.
    #[error(
        "the window of this node ended at Unix us {until_us} and was not extended; \
         its keeper must be alive, and able to record"
    )]
    WindowEnded {
        /// The end, in Unix µs.
        until_us: i64,
    },
    /// The tick has no IDs left. As a refusal, the clock has also stopped: a blocking call has
    /// waited for two ticks and 100 ms, or as long as the policy allows if that is longer.
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

/// Why a generator cannot start.
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
    /// The refusal for a caller that does not wait. `None` for an exhausted sequence, which is
    /// waited for under any policy while the clock moves.
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
