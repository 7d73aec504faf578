//! What a source is doing, and whether it is complete: what follows from the facts, and nothing else.

use driftline_runtime::show_ms;
use serde::{Deserialize, Serialize};

use crate::source_health::SourceFault;

/// All that the state of a source and its completeness follow from, at one time. Spans are in ms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFacts {
    /// It is not to be read until it is resumed.
    pub is_paused: bool,
    /// The disk has no room for what would be read.
    pub is_out_of_room: bool,
    /// Its posts are looked up, and no timeline is read.
    pub is_tracked: bool,
    /// A process reads it.
    pub is_read: bool,
    /// What keeps it from being read, or parts of it.
    pub fault: Option<SourceFault>,
    /// The wait that its server has asked for, if it is not over.
    pub wait: Option<SourceWait>,
    /// Why this server's answers cannot prove that nothing is missing.
    pub unprovable: Option<String>,
    /// Whether the last poll failed.
    pub polls_fail: bool,
    /// How long ago a poll last succeeded; `None` if none has.
    pub polled_ago_ms: Option<i64>,
    /// How long ago that may be while it is read as planned.
    pub may_be_ago_ms: i64,
    /// Whether a poll found more than a page, and the posts below it are read before any of them is stored.
    pub is_catching_up: bool,
    /// For how long the look that waits the longest has been overdue, if one is.
    pub overdue_ms: Option<i64>,
    /// How late posts come that the last look may come before, if some do.
    pub late_ms: Option<i64>,
    /// For how long pages have shown nothing new, if any was read.
    pub quiet_ms: Option<i64>,
    /// For how long its timeline is known to have no posts; `None` if it has some.
    pub empty_ms: Option<i64>,
    /// Whether a page has shown a post.
    pub has_posts: bool,
    /// The ranges that are not proven complete.
    pub ranges: RangeCounts,
    /// Posts of its history that are stored.
    pub history_posts: u64,
}

/// A wait that the server of a source has asked for (`Retry-After`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceWait {
    /// The server's address.
    pub server: String,
    /// When it ends, Unix ms.
    pub until_ms: i64,
    /// How long that is from now, ms.
    pub left_ms: i64,
}

/// Ranges that are not proven complete, by why they are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RangeCounts {
    /// Not read.
    pub open: u64,
    /// Requested history, not read yet.
    pub history: u64,
    /// Read, and to be read again.
    pub provisional: u64,
    /// Read, but not again at the last age.
    pub passed_over: u64,
    /// The upstream's pages do not reach it.
    pub unrecoverable: u64,
}

/// What a source is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It is not read until it is resumed.
    Paused,
    /// The disk has no room for what would be read, so that nothing is.
    OutOfRoom,
    /// Its posts are looked up, and no timeline is read.
    Tracked,
    /// It has a fault.
    Failing,
    /// Not read: no server runs, or none has claimed it yet.
    NotRead,
    /// A process has it, and no poll has succeeded for longer than its interval allows.
    NotPolled,
    /// It has more news than a page, which are stored together once all are read.
    CatchingUp,
    /// It is read, but its server's answers do not prove that nothing is missing.
    CannotBeProven,
    /// Its history is being fetched.
    History,
    /// It is read, and nothing new has come for an hour.
    Quiet,
    /// It is read.
    Reading,
}

/// Whether a source is complete up to its last poll, and if not, what is in the way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No poll has succeeded yet.
    NothingRead,
    /// The newest polls fail.
    PollsFail,
    /// No poll has succeeded recently.
    NotPolled,
    /// More news than a page were found, and are not stored yet.
    CatchingUp,
    /// The server's answers do not prove it.
    CannotBeProven,
    /// Ranges are open or lost.
    Gaps,
    /// Requested history is not read yet.
    History,
    /// Ranges should have been read again and were not.
    LooksOverdue,
    /// Ranges came of age without the last look.
    PassedOver,
    /// Posts come later than the last look, or may: what it has read may lack some.
    LaterThanLooks,
    /// No post so far, which no answer has proven yet.
    EmptySoFar,
    /// Complete, and the timeline has no posts.
    Empty,
    /// No gaps; ranges wait to be read again in time.
    Provisional,
    /// Nothing is left to be read again.
    Settled,
}

impl SourceFacts {
    /// What the source is doing.
    pub fn state(&self) -> SourceState {
        if self.is_paused {
            SourceState::Paused
        } else if self.is_out_of_room {
            SourceState::OutOfRoom
        } else if self.is_tracked {
            SourceState::Tracked
        } else if self.fault.is_some() {
            SourceState::Failing
        } else if !self.is_read {
            SourceState::NotRead
        } else if !self.is_polled_in_time() {
            SourceState::NotPolled
        } else if self.is_catching_up {
            SourceState::CatchingUp
        } else if self.unprovable.is_some() {
            SourceState::CannotBeProven
        } else if self.ranges.history > 0 {
            SourceState::History
        } else if self.is_quiet() {
            SourceState::Quiet
        } else {
            SourceState::Reading
        }
    }

    /// The state in words.
    pub fn state_text(&self) -> String {
        match (self.state(), &self.fault, &self.unprovable) {
            (SourceState::Failing, Some(fault), _) => {
                let wait = self.wait.as_ref().map(SourceWait::text);
                format!("failing: {}{}", fault.summary, wait.unwrap_or_default())
            }
            (SourceState::OutOfRoom, ..) => OUT_OF_ROOM.to_owned(),
            (SourceState::CannotBeProven, _, Some(why)) => format!("cannot be proven: {why}"),
            (SourceState::NotPolled, ..) => match self.polled_ago_ms {
                Some(ago_ms) => format!("not polled for {}", show_ms(ago_ms)),
                None => "not polled yet".to_owned(),
            },
            (SourceState::History, ..) => format!("history {} posts", grouped(self.history_posts)),
            (state, ..) => state.name().to_owned(),
        }
    }

    /// Whether the source is complete up to its last poll.
    pub fn verdict(&self) -> Verdict {
        let ranges = &self.ranges;
        if self.polls_fail {
            Verdict::PollsFail
        } else if self.polled_ago_ms.is_none() && !self.has_posts {
            Verdict::NothingRead
        } else if !self.is_polled_in_time() {
            Verdict::NotPolled
        } else if self.is_catching_up {
            Verdict::CatchingUp
        } else if self.unprovable.is_some() {
            Verdict::CannotBeProven
        } else if ranges.open + ranges.unrecoverable > 0 {
            Verdict::Gaps
        } else if ranges.history > 0 {
            Verdict::History
        } else if self.overdue_ms.is_some() {
            Verdict::LooksOverdue
        } else if ranges.passed_over > 0 {
            Verdict::PassedOver
        } else if self.late_ms.is_some() {
            Verdict::LaterThanLooks
        } else if !self.has_posts {
            let is_proven = self
                .empty_ms
                .is_some_and(|empty_ms| empty_ms >= SURELY_EMPTY_MS);
            if is_proven {
                Verdict::Empty
            } else {
                Verdict::EmptySoFar
            }
        } else if ranges.provisional > 0 {
            Verdict::Provisional
        } else {
            Verdict::Settled
        }
    }

    /// Whether a poll has succeeded as lately as its interval lets it.
    fn is_polled_in_time(&self) -> bool {
        let is_recent = |ago_ms| ago_ms <= self.may_be_ago_ms;
        self.polled_ago_ms.is_some_and(is_recent)
    }

    fn is_quiet(&self) -> bool {
        let has_none = !self.has_posts && self.polled_ago_ms.is_some();
        has_none || self.quiet_ms.is_some_and(|quiet_ms| quiet_ms >= QUIET_MS)
    }
}

impl SourceWait {
    fn text(&self) -> String {
        let left = show_ms((self.left_ms / 1_000).max(1) * 1_000);
        format!("; {} asked to wait, {left} left", self.server)
    }
}

impl SourceState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::OutOfRoom => "no room",
            Self::Tracked => "tracked",
            Self::Failing => "failing",
            Self::NotRead => "not read",
            Self::NotPolled => "not polled",
            Self::CatchingUp => "catching up",
            Self::CannotBeProven => "cannot be proven",
            Self::History => "history",
            Self::Quiet => "quiet",
            Self::Reading => "reading",
        }
    }
}

impl Verdict {
    /// Whether everything up to the last poll is stored, as far as answers prove it by now.
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Empty | Self::Provisional | Self::Settled)
    }

    /// Whether, besides, nothing is left to be read again.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Empty | Self::Settled)
    }
}

/// A number with thousands separators.
fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

const OUT_OF_ROOM: &str = "no room: not read until the disk has more than its reserve";
/// Without news for so long, a source is quiet.
const QUIET_MS: i64 = 3_600_000;
/// Empty answers over so long say that a timeline has no posts; one may come from a cold cache.
const SURELY_EMPTY_MS: i64 = 10 * 60_000;

#[cfg(test)]
mod tests;
