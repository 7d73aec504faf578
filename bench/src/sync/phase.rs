//! The figures of synchronizations.

use serde::Deserialize;

use crate::failure::Failure;

/// The cost of a synchronization. A figure is not-a-number where it is unknown.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Phase {
    pub(super) seconds: f64,
    /// The time that the search index took afterwards.
    #[serde(default = "nan")]
    pub(super) index_seconds: f64,
    /// The number of requests that were answered.
    pub(super) requests: f64,
    /// The size of the answers' bodies as they were sent, compressed or not.
    pub(super) bytes: f64,
    /// The number of objects that came.
    pub(super) read: f64,
}

/// The synchronizations of one round.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Phases {
    /// The first one.
    pub(super) full: Phase,
    /// The one after some objects have changed.
    pub(super) changed: Phase,
    /// One without news.
    pub(super) none: Phase,
    /// One of 40 libraries without news.
    pub(super) none_of_many: Phase,
    /// Comparisons with the server, of all and of a part that a filter selects.
    #[serde(default = "unknown")]
    pub(super) verified: [Phase; 2],
}

fn nan() -> f64 {
    f64::NAN
}

fn unknown() -> [Phase; 2] {
    [Phase::UNKNOWN; 2]
}

impl Phase {
    pub(super) const UNKNOWN: Self = Self {
        seconds: f64::NAN,
        index_seconds: f64::NAN,
        requests: f64::NAN,
        bytes: f64::NAN,
        read: f64::NAN,
    };
}

impl Phases {
    pub(super) const UNKNOWN: Self = Self {
        full: Phase::UNKNOWN,
        changed: Phase::UNKNOWN,
        none: Phase::UNKNOWN,
        none_of_many: Phase::UNKNOWN,
        verified: [Phase::UNKNOWN; 2],
    };

    /// Itself, if so many objects have come at first, then the changed ones, and then nothing. A phase that was not measured
    /// passes.
    pub(super) fn checked(self, objects: usize, changes: usize) -> Result<Self, Failure> {
        for (phase, expected) in [
            (self.full, objects),
            (self.changed, changes),
            (self.none, 0),
            (self.none_of_many, 0),
        ] {
            let read = phase.read;
            if !read.is_nan() && read != expected as f64 {
                return Err(Failure::new(format!("{read} objects came, not {expected}")));
            }
        }
        Ok(self)
    }
}
