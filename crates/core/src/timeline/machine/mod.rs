//! The machine of one source: what to do next, and what an answer means.

mod answers;
mod steps;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    ladder::Yield,
    lateness::Lateness,
    ledger::{Gap, GapKind, Ledger},
    plan::{self, Measured, Plan},
    request::Fetch,
    scheme::IdScheme,
    settings::Settings,
    throttles::Throttles,
};
use crate::{
    answer::{Abilities, FailureKind},
    upstream_id::{Key, UpstreamId},
};

/// A source's whole state, kept in the store with its posts.
///
/// It is changed by facts and asked for steps; it never acts. What it learns
/// from an answer is committed together with the answer's posts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    scheme: Option<IdScheme>,
    ledger: Ledger,
    retrieved_at_ms: Option<i64>,
    history: History,
    lateness: Lateness,
    yields: Vec<Yield>,
    counters: Counters,
    suspects: VecDeque<Suspect>,
    rate_per_s: f64,
    new_per_poll: f64,
    throttles: Throttles,
    /// Local time less server time, ms; never below zero.
    clock_lead_ms: i64,
    pace: Pace,
    last_error: Option<LastError>,
}

/// The machine's next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask for a page.
    Fetch(Fetch),
    /// Look one post up: it was missing from a page that should list it.
    LookUp(UpstreamId),
    /// Nothing to do before this time, Unix ms by the local clock.
    Wait {
        /// When to ask again.
        until_ms: i64,
    },
}

/// What the store found when it took a page's posts in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// For each listed post, whether no page of this source had shown it
    /// before. What only a stream has shown is new: it proves nothing, and
    /// lateness is how late pages show posts.
    pub new: Vec<bool>,
    /// How many of the others were edited since.
    pub edited: u64,
    /// Posts that are stored, not known to be deleted, inside the stretch that
    /// a look read, and not on its page.
    pub absent: Vec<UpstreamId>,
    /// For an empty answer, the newest post that a page has shown and that is
    /// not known to be deleted at or below
    /// [`Request::bottom`](super::Request::bottom).
    pub live_at_bottom: Option<Key>,
}

/// Sums since the source began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Requests that were sent.
    pub requests: u64,
    /// Posts in all answers.
    pub fetched: u64,
    /// Posts that pages showed first, history included.
    pub stored: u64,
    /// Posts stored as history.
    pub history: u64,
    /// Posts that only the overlap caught: a poll from the newest ID would
    /// have passed them over.
    pub caught_by_overlap: u64,
    /// Posts that only a rung caught.
    pub caught_by_rescan: u64,
    /// Edits seen.
    pub edited: u64,
    /// Deletions confirmed by a look-up.
    pub deleted: u64,
    /// Posts missing from a page that a look-up still found.
    pub hidden: u64,
    /// Absent posts that were not looked up because too many were waiting.
    pub suspects_dropped: u64,
    /// Failed requests.
    pub failures: u64,
}

/// The error that a source stands at, or stood at last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Its name.
    pub kind: FailureKind,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// When, Unix ms.
    pub at_ms: i64,
    /// Whether a later request of its kind succeeded.
    pub over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Suspect {
    id: UpstreamId,
    rung: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct History {
    /// An empty timeline was seen before its first post.
    seen_empty: bool,
    /// Posts still wanted, for [`Backfill::Count`].
    left: Option<u64>,
    /// History is wanted back to this time, for [`Backfill::Duration`], Unix ms.
    since_ms: Option<i64>,
    /// Empty answers without an anchor, in a row, at the bottom of a range.
    bottom_seen: u32,
    /// The last anchor that was looked up and is there, though the timeline no
    /// longer shows it.
    out_of_reach: Option<UpstreamId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Pace {
    last_poll_ms: Option<i64>,
    last_request_ms: Option<i64>,
    last_was_poll: bool,
    blocked_until_ms: i64,
    work_blocked_until_ms: i64,
    /// In a row, whatever was asked for: the server or the way to it.
    server_failures: u32,
    /// In a row: answers to polls that could not be used.
    poll_failures: u32,
    /// In a row: answers to other requests that could not be used.
    work_failures: u32,
    /// Requests lately, and those of rungs above the second look among them.
    recent: u32,
    recent_rungs: u32,
}

impl Machine {
    /// How the source's IDs are ordered; `None` until the first post is seen.
    pub fn scheme(&self) -> Option<&IdScheme> {
        self.scheme.as_ref()
    }

    /// The gap ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Puts back the ledger's ranges, which the store keeps as rows.
    pub fn restore_gaps(&mut self, gaps: Vec<Gap>) {
        self.ledger.restore_gaps(gaps);
    }

    /// What was measured of lateness.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What each rung found, the second look first.
    pub fn yields(&self) -> &[Yield] {
        &self.yields
    }

    /// Sums since the source began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The error that the source stands at, or stood at last.
    pub fn last_error(&self) -> Option<&LastError> {
        self.last_error.as_ref()
    }

    /// The throttles that the upstream reported.
    pub fn throttles(&self) -> &Throttles {
        &self.throttles
    }

    /// New posts a second, lately.
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// Whether a first page was taken in: from then on the source's entries
    /// may be read by others, while its history is still being fetched.
    pub fn is_readable(&self) -> bool {
        self.ledger.frontier().is_some() || self.history.seen_empty
    }

    /// Whether a crash that put `stored` in this one's place would lose
    /// nothing but measurements: the ledger, the history in work and the
    /// look-ups to come are the same.
    pub fn is_as_durable_as(&self, stored: &Self) -> bool {
        self.ledger == stored.ledger
            && self.history == stored.history
            && self.suspects == stored.suspects
    }

    /// The plan for what was measured so far, with its reasons.
    pub fn plan(&self, settings: &Settings, abilities: Abilities, now_ms: i64) -> Plan {
        self.make_plan(settings, abilities, now_ms, true)
    }

    fn make_plan(
        &self,
        settings: &Settings,
        abilities: Abilities,
        now_ms: i64,
        explain: bool,
    ) -> Plan {
        plan::make(
            settings,
            Measured {
                lateness: &self.lateness,
                rate_per_s: self.rate_per_s,
                page_limit: abilities.page_limit,
                throttle_spacing_ms: self.throttles.spacing_ms(now_ms),
                timed: self.scheme.is_some_and(|scheme| scheme.layout.is_some()),
            },
            explain,
        )
    }

    /// Asks for the open gap that begins at `low` to be filled. `false` if
    /// there is none.
    pub fn want(&mut self, low: &Key) -> bool {
        self.ledger.want(low)
    }

    /// Whether everything below `before_ms` (Unix ms by the local clock) is
    /// settled: no open gap that is to be filled, and nothing that waits for
    /// one of the first `rungs` rungs.
    pub fn is_settled(&self, settings: &Settings, before_ms: i64, rungs: usize) -> bool {
        let before_ms = before_ms - self.clock_lead_ms;
        !self.ledger.gaps().iter().any(|gap| match gap.kind {
            GapKind::Open { wanted, .. } => wanted || settings.fill_gaps,
            GapKind::Provisional { rung, from_ms, .. } => rung < rungs && from_ms < before_ms,
            GapKind::Unrecoverable => false,
        })
    }

    fn yield_of(&mut self, rung: usize) -> &mut Yield {
        if self.yields.len() <= rung {
            self.yields.resize(rung + 1, Yield::default());
        }
        &mut self.yields[rung]
    }
}

fn is_history(gap: &Gap) -> bool {
    matches!(gap.kind, GapKind::Open { history: true, .. })
}
