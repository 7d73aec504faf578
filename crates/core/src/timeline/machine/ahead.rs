//! Posts dated ahead of the server's time.

use serde::{Deserialize, Serialize};

/// The handling of posts that are dated ahead. Each poll would fetch them again until their time,
/// so polls exclude them while they exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ahead {
    seen: bool,
    /// True if the upstream showed them although the request excluded them.
    ignored: bool,
    /// The time at which they were last read separately, in Unix ms by the local clock.
    pub(super) read_at_ms: i64,
    /// True if the last answer contained the server's time. Without it, posts ahead cannot be
    /// detected.
    dated: bool,
}

impl Ahead {
    /// True if polls must exclude them.
    pub(super) fn leaves_out(self) -> bool {
        self.seen && self.dated && !self.ignored
    }

    /// Records an answer with or without the server's time.
    pub(super) fn answered(&mut self, dated: bool) {
        self.dated = dated;
    }

    /// True if the last answer contained the server's time.
    pub(super) fn is_dated(self) -> bool {
        self.dated
    }

    /// Records the number of posts ahead that a poll showed. `left_out` is true if the poll
    /// excluded them.
    pub(super) fn polled(&mut self, left_out: bool, shown: usize, now_ms: i64) {
        if shown == 0 {
            return;
        }
        if left_out {
            self.ignored = true;
        } else if !self.seen {
            self.seen = true;
            self.read_at_ms = now_ms;
        }
    }

    /// Records a separate read.
    pub(super) fn read(&mut self, shown: usize, now_ms: i64) {
        self.seen = shown > 0;
        self.read_at_ms = now_ms;
    }
}
