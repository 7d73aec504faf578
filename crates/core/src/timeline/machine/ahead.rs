//! Posts dated ahead of the server's time.

use serde::{Deserialize, Serialize};

/// The handling of posts that are dated ahead: each poll would fetch them again until their time
/// comes, so polls leave them out while there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Ahead {
    seen: bool,
    /// The upstream showed them although it was asked to leave them out.
    ignored: bool,
    /// When they were read by themselves last, Unix ms by the local clock.
    pub(super) read_at_ms: i64,
    /// Whether the last answer carried the server's time: without it, posts ahead cannot be detected.
    dated: bool,
}

impl Ahead {
    /// Whether polls are to leave them out.
    pub(super) fn leaves_out(self) -> bool {
        self.seen && self.dated && !self.ignored
    }

    /// An answer came, with the server's time or without.
    pub(super) fn answered(&mut self, dated: bool) {
        self.dated = dated;
    }

    /// Whether the last answer carried the server's time.
    pub(super) fn is_dated(self) -> bool {
        self.dated
    }

    /// A poll, which left them out or not, showed this many.
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

    /// They were read by themselves.
    pub(super) fn read(&mut self, shown: usize, now_ms: i64) {
        self.seen = shown > 0;
        self.read_at_ms = now_ms;
    }
}
