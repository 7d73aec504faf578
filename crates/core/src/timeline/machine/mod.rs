//! The machine of one source: what to do next, and what an answer means.

mod ahead;
mod answers;
mod clocks;
mod empty_ranges;
mod errors;
mod measuring;
mod polls;
mod proof;
mod rechecks;
mod stalled;
mod steps;
mod suspects;
mod waiting;
mod walks;
mod ways;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use self::steps::SETTLING_LOOK_MS;
use self::{
    ahead::Ahead, empty_ranges::EmptyRange, errors::Errors, rechecks::Recheck, stalled::Stalled,
    suspects::Suspect, walks::Walk,
};
pub use self::{
    answers::AbsenceRange,
    errors::{FailedRequest, LastError},
    polls::Polls,
    suspects::LookUpOutcome,
    waiting::Waiting,
};
use super::{
    abilities::HonouredAbilities,
    evidence::Evidence,
    gap_ledger::{Gap, GapKind, GapLedger},
    ladder::RungStats,
    lateness::Lateness,
    overlap::{Choice, Measured},
    plan::{self, Plan},
    probes::Probes,
    request::Fetch,
    scheme::IdScheme,
    settings::Settings,
    trials::Trials,
};
use crate::{
    answer::{Abilities, Failure},
    clock::Deadline,
    quota::QuotaView,
    upstream_id::{Key, UpstreamId},
};

/// A source's whole state, kept in the store with its posts.
///
/// It takes events and returns steps; it never acts. [`Session`](super::Session) drives it, in this order:
///
/// 1. [`Machine::clock_stepped`] whenever the wall clock was set, before anything else; [`Machine::set_quota`] before
///    each step.
/// 2. [`Machine::next`] returns a [`Step`]. It may be called again at any time, as long as nothing was sent.
/// 3. [`Machine::sent`] once, when the step's request is sent.
/// 4. For a page: [`Machine::is_history`], [`Machine::absence_range`] and [`Machine::nothing_below`] tell the store
///    what to find out before the page changes anything; then [`Machine::page`] once, in the transaction that stores
///    the page's posts. Or [`Machine::failed`]. For a look-up: [`Machine::looked_up`] in the transaction that
///    stores its answer, or [`Machine::look_up_failed`].
///
/// While the pages of a backlog are held, a copy of the machine takes them in and chooses the next fill. The machine
/// itself stays as it was ([`Machine::is_catching_up`]), and adopts the copy's requests before the pages are
/// committed in the order of 4.
///
/// A crash between two of these loses nothing: the machine as it was stored last goes on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    scheme: Option<IdScheme>,
    ledger: GapLedger,
    retrieved_at_ms: Option<i64>,
    /// When the last poll was answered, by the server's clock alone.
    polled_at_ms: Option<i64>,
    /// Down to which ID it read.
    polled_from: Option<Key>,
    history: History,
    /// Ranges of which answers showed nothing.
    empty_ranges: Vec<EmptyRange>,
    /// Ranges whose requests make no progress.
    stalled: Vec<Stalled>,
    /// Where pages ended in the middle of a second.
    walks: Vec<Walk>,
    honoured: HonouredAbilities,
    lateness: Lateness,
    evidence: Evidence,
    probes: Probes,
    rung_stats: Vec<RungStats>,
    trials: Trials,
    /// When a look at an age found an edit or a deletion last, Unix ms, by age in ms.
    changes: BTreeMap<i64, i64>,
    counters: Counters,
    suspects: VecDeque<Suspect>,
    rechecks: Vec<Recheck>,
    rate_per_s: f64,
    /// New posts a second, over a day.
    daily_rate_per_s: f64,
    /// What that is an average of, s.
    rated_s: f64,
    new_per_poll: f64,
    /// Set before each step.
    #[serde(skip)]
    quota: QuotaView,
    /// Local time less server time, ms; up to a second and a round trip more.
    clock_lead_ms: i64,
    /// Whether an answer has shown that since this machine was loaded: the clock may have been set meanwhile.
    #[serde(skip)]
    is_lead_known: Derived<bool>,
    ahead: Ahead,
    /// Made again after each load.
    #[serde(skip)]
    decision: Derived<Option<Decision>>,
    pace: Pace,
    errors: Errors,
    polls: Polls,
    /// Whether the pages of a backlog are held by the session: see [`Machine::is_catching_up`].
    is_catching_up: bool,
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

/// The result of storing a page's posts.
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
    /// The newest post that a page has shown and that is not known to be deleted
    /// below [`Machine::nothing_below`], if that is anywhere.
    pub live_below: Option<Key>,
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
    /// Posts missing from a page that a look-up still found, or that are not there for this reader.
    pub hidden: u64,
    /// Look-ups of absent posts that proved nothing in the end.
    pub not_confirmed: u64,
    /// Absent posts that were not looked up because too many were waiting.
    pub suspects_dropped: u64,
    /// Failed requests.
    pub failures: u64,
}

/// State that follows from the rest of a machine or from the process, and so does not count for equality.
#[derive(Debug, Clone, Default)]
struct Derived<T>(T);

impl<T> PartialEq for Derived<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The current choice, and the inputs that it was made for.
#[derive(Debug, Clone)]
struct Decision {
    choice: Choice,
    every_ms: i64,
    at_ms: i64,
    /// Pages that were read since.
    pages: u32,
    /// A post arrived that the choice would not have read.
    is_refuted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct History {
    /// An empty timeline was seen before its first post.
    seen_empty: bool,
    /// Posts still to fetch, for [`Backfill::Count`].
    left: Option<u64>,
    /// The time where history begins, for [`Backfill::Duration`], Unix ms.
    since_ms: Option<i64>,
    /// When that was seen first, Unix ms by the server's clock.
    #[serde(default)]
    empty_since_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Pace {
    last_poll_ms: Option<i64>,
    last_request_ms: Option<i64>,
    last_was_poll: bool,
    /// Nothing is asked for before.
    blocked: Deadline,
    /// Nothing but polls is asked for before.
    work_blocked: Deadline,
    /// In a row, whatever was asked for: the server or the way to it.
    server_failures: u32,
    /// In a row: answers to polls that could not be used.
    poll_failures: u32,
    /// In a row: answers to other requests that could not be used.
    work_failures: u32,
    /// In a row: look-ups that failed, which keep nothing else waiting.
    look_up_failures: u32,
    look_ups_blocked: Deadline,
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
    pub fn ledger(&self) -> &GapLedger {
        &self.ledger
    }

    /// Restores the ledger's ranges, which the store keeps as rows.
    pub fn restore_gaps(&mut self, gaps: Vec<Gap>) {
        self.ledger.restore_gaps(gaps);
    }

    /// What was measured of lateness.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What each rung found, the second look first.
    pub fn rung_stats(&self) -> &[RungStats] {
        &self.rung_stats
    }

    /// Sums since the source began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The current error of the source, or its last one.
    pub fn last_error(&self) -> Option<&LastError> {
        self.errors.last()
    }

    /// The error that keeps the source from being read now: of its polls, else of its other pages.
    pub fn ongoing_error(&self) -> Option<&LastError> {
        self.errors.ongoing()
    }

    /// Records why the server is not asked for the timeline's stream for now, or that it has it; the time
    /// is Unix ms.
    pub fn stream_missing(&mut self, failure: Option<&Failure>, now_ms: i64) {
        match failure {
            Some(failure) => self.errors.failed(FailedRequest::Stream, failure, now_ms),
            None => self.errors.end(FailedRequest::Stream),
        }
    }

    /// Whether the last poll failed.
    pub fn polls_fail(&self) -> bool {
        self.errors.polls_fail()
    }

    /// What polls have had recently.
    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    /// What the quota left at the last step.
    pub fn quota(&self) -> QuotaView {
        self.quota
    }

    /// Plans from now on with what the quota leaves.
    pub fn set_quota(&mut self, quota: QuotaView) {
        self.quota = quota;
    }

    /// New posts a second, lately.
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// Whether a poll found more news than its page has, which are held until all are read: then neither the
    /// coverage nor the last poll's time say how far the source is read. The next poll that is committed ends it.
    pub fn is_catching_up(&self) -> bool {
        self.is_catching_up
    }

    /// Records that the page of a poll is held.
    pub(super) fn catch_up(&mut self) {
        self.is_catching_up = true;
    }

    /// Adopts the requests that another state of this machine has sent since, and what came of them.
    pub(super) fn adopt_requests(&mut self, other: &Self) {
        // A poll may have been requested meanwhile.
        let last_poll_ms = self.pace.last_poll_ms;
        self.pace = Pace {
            last_poll_ms,
            // The fills belong to their poll: something else may come before the next one.
            last_was_poll: true,
            ..other.pace.clone()
        };
        self.errors.clone_from(&other.errors);
        self.counters.requests = other.counters.requests;
        self.counters.failures = other.counters.failures;
    }

    /// Whether a first page was taken in: from then on the source's entries
    /// may be read by others, while its history is still being fetched.
    pub fn is_readable(&self) -> bool {
        let is_begun = self.ledger.frontier().is_some() || self.history.seen_empty;
        is_begun || self.honoured.disorder.is_some()
    }

    /// Since when the timeline is empty, Unix ms by the server's clock; `None` once a page has shown
    /// a post.
    pub fn empty_since_ms(&self) -> Option<i64> {
        let is_empty = self.ledger.frontier().is_none();
        self.history.empty_since_ms.filter(|_| is_empty)
    }

    /// Whether a crash that replaced this machine by `stored` would lose
    /// only measurements: the ledger, the history in work, the
    /// look-ups to come and the errors are the same.
    pub fn is_as_durable_as(&self, stored: &Self) -> bool {
        self.ledger == stored.ledger
            && self.history == stored.history
            && self.suspects == stored.suspects
            && self.empty_ranges == stored.empty_ranges
            && self.errors == stored.errors
    }

    /// What was read again without result.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The local clock's time less the server's, ms, to a second and a round trip; `None` where
    /// answers do not carry the server's time, so that the local clock has to be right.
    pub fn clock_lead_ms(&self) -> Option<i64> {
        self.ahead.is_dated().then_some(self.clock_lead_ms)
    }

    /// Uses the lateness of another source of the same instance as a prior if this one has measured
    /// none: it shapes the plan, never the bound.
    pub fn assume(&mut self, other: &Lateness) {
        if self.lateness.is_empty() && !other.is_empty() {
            self.lateness = other.as_prior(PRIOR_POSTS);
        }
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
        let kept_ms = self.kept_ms(settings, now_ms);
        let measured = self.measured(abilities, &kept_ms, now_ms);
        match self.choice() {
            Some(choice) => plan::of_choice(settings, measured, choice, explain),
            None => plan::make(settings, measured, explain),
        }
    }

    /// The overlap and looks that were chosen last.
    pub(super) fn choice(&self) -> Option<&Choice> {
        self.decision.0.as_ref().map(|decision| &decision.choice)
    }

    /// Chooses overlap and looks again, if enough has been read since, or if what was chosen has
    /// been refuted.
    fn decide(&mut self, settings: &Settings, abilities: Abilities, now_ms: i64) {
        let kept_ms = self.kept_ms(settings, now_ms);
        let measured = self.measured(abilities, &kept_ms, now_ms);
        let every_ms = plan::interval_ms(settings, measured);
        let is_current = self.decision.0.as_ref().is_some_and(|decision| {
            let other = every_ms.abs_diff(decision.every_ms) as i64;
            let since_ms = now_ms - decision.at_ms;
            let is_fresh = decision.pages < PAGES_PER_DECISION || since_ms < MIN_DECISION_MS;
            let is_same = !decision.is_refuted && other <= decision.every_ms / 4;
            is_fresh && is_same && (0..DECISION_MS).contains(&since_ms)
        });
        if is_current {
            return;
        }
        let choice = plan::choose(settings, measured);
        let longest_ms = choice.looks.last().map_or(0, |look| look.age_ms);
        if let Some(trial_ms) = measured.trial_ms {
            if choice.is_proven && longest_ms <= trial_ms {
                self.trials.proven(trial_ms);
            } else if choice.trial_ms.is_none_or(|other_ms| other_ms > trial_ms) {
                self.trials.failed(trial_ms);
            }
        }
        self.decision.0 = Some(Decision {
            choice,
            every_ms,
            at_ms: now_ms,
            pages: 0,
            is_refuted: false,
        });
    }

    fn measured<'a>(
        &'a self,
        abilities: Abilities,
        kept_ms: &'a [i64],
        now_ms: i64,
    ) -> Measured<'a> {
        Measured {
            lateness: &self.lateness,
            evidence: &self.evidence,
            kept_ms,
            trials: &self.trials,
            trial_ms: self.choice().and_then(|choice| choice.trial_ms),
            rate_per_s: self.rate_per_s,
            is_rate_known: self.rated_s >= RATED_S,
            daily_rate_per_s: self.daily_rate_per_s,
            page_limit: abilities.page_limit,
            quota_spacing_ms: self.quota.spacing_ms,
            timed: self.scheme.is_some_and(|scheme| scheme.layout.is_some()),
            now_ms,
        }
    }

    /// The ages of rungs that stay for the edits and deletions that they find.
    fn kept_ms(&self, settings: &Settings, now_ms: i64) -> Vec<i64> {
        if settings.refreshed {
            return Vec::new();
        }
        let lately = now_ms - CHANGES_MS;
        let finds = |age_ms: &i64| self.changes.get(age_ms).is_some_and(|at| *at > lately);
        let ages = settings.rungs.iter().map(|rung| rung.age_ms);
        ages.filter(finds).collect()
    }

    /// What is tolerated of IDs ahead of the server's time, ms: some servers' always are.
    fn tolerance_ms(&self) -> i64 {
        TOLERANCE_MS.max(self.lateness.newest_ahead_ms.saturating_mul(4))
    }

    /// Requests that the open gap that begins at `low` be filled. `false` if
    /// there is none.
    pub fn request_fill(&mut self, low: &Key) -> bool {
        self.ledger.request_fill(low)
    }

    /// The same, by the ID at which reports show that the gap begins.
    pub fn request_fill_at(&mut self, low: &UpstreamId) -> bool {
        let key = self.scheme.and_then(|scheme| scheme.key(low).ok());
        key.is_some_and(|key| self.request_fill(&key))
    }

    /// Whether everything below `before_ms` (Unix ms by the local clock) is
    /// settled: [`Machine::unsettled`] is empty, and no backlog is read.
    pub fn is_settled(&self, settings: &Settings, before_ms: i64, rungs: usize) -> bool {
        !self.is_catching_up && self.unsettled(settings, before_ms, rungs).next().is_none()
    }

    /// What is not settled below `before_ms` (Unix ms by the local clock): open gaps that are to be
    /// filled, and what waits for one of the first `rungs` rungs. Of the second look alone the one
    /// that [`Machine::next`] takes while settling is enough.
    pub fn unsettled(
        &self,
        settings: &Settings,
        before_ms: i64,
        rungs: usize,
    ) -> impl Iterator<Item = &Gap> {
        let before_ms = before_ms - self.clock_lead_ms;
        let mut ages: Vec<i64> = settings.rungs.iter().map(|rung| rung.age_ms).collect();
        let second_look = self.choice().and_then(|choice| choice.looks.first());
        ages.push(second_look.map_or(settings.second_look_ms, |look| look.age_ms));
        ages.sort_unstable();
        ages.truncate(rungs);
        let last_ms = match ages[..] {
            [second_look_ms] => second_look_ms.min(SETTLING_LOOK_MS),
            _ => ages.last().copied().unwrap_or(0),
        };
        let fills = settings.fill_gaps;
        self.ledger.gaps().iter().filter(move |gap| match gap.kind {
            GapKind::Open { fill_requested, .. } => fill_requested || fills,
            GapKind::Provisional(read) => read.read_age_ms < last_ms && read.from_ms < before_ms,
            GapKind::PassedOver { .. } | GapKind::Unrecoverable => false,
        })
    }

    fn stats_of(&mut self, rung: usize) -> &mut RungStats {
        if self.rung_stats.len() <= rung {
            self.rung_stats.resize(rung + 1, RungStats::default());
        }
        &mut self.rung_stats[rung]
    }
}

fn is_history(gap: &Gap) -> bool {
    matches!(gap.kind, GapKind::Open { history: true, .. })
}

/// A choice lasts for this many pages, within a least and a greatest time.
const PAGES_PER_DECISION: u32 = 100;
const MIN_DECISION_MS: i64 = 60_000;
const DECISION_MS: i64 = 3_600_000;
/// The rate of posts is known once polls have shown so much of a timeline, s.
const RATED_S: f64 = 60.0;
/// The weight of a prior from other sources, in posts.
const PRIOR_POSTS: f32 = 400.0;
/// Edits and deletions that a rung found keep it for so long.
const CHANGES_MS: i64 = 30 * 86_400_000;
const TOLERANCE_MS: i64 = 60_000;
