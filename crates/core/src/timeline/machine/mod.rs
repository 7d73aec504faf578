//! The machine of one source: its next step, and the effects of answers.

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

/// The whole state of a source, stored with its posts.
///
/// It accepts events and returns steps, and never acts. [`Session`](super::Session) drives it, in
/// this order:
///
/// 1. [`Machine::clock_stepped`] whenever the wall clock was set, before anything else; [`Machine::set_quota`] before
///    each step.
/// 2. [`Machine::next`] returns a [`Step`]. It may be called again until a request was sent.
/// 3. [`Machine::sent`] once, when the step's request is sent.
/// 4. For a page: [`Machine::is_history`], [`Machine::absence_range`] and [`Machine::nothing_below`] determine what the store must find out before the page changes anything; then [`Machine::page`] once, in the transaction that stores
///    the page's posts. Or [`Machine::failed`]. For a look-up: [`Machine::looked_up`] in the
///    transaction that stores its answer, or [`Machine::look_up_failed`].
///
/// While the pages of a backlog are held, a copy of the machine applies them and chooses the next
/// fill. The machine itself stays as it was ([`Machine::is_catching_up`]), and adopts the copy's
/// requests before the pages are committed in the order of 4.
///
/// A crash between two steps loses nothing: the last stored machine continues.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    scheme: Option<IdScheme>,
    ledger: GapLedger,
    retrieved_at_ms: Option<i64>,
    /// The time of the last answered poll, by the server's clock only.
    polled_at_ms: Option<i64>,
    /// The lowest ID of that poll.
    polled_from: Option<Key>,
    history: History,
    /// Ranges for which answers showed nothing.
    empty_ranges: Vec<EmptyRange>,
    /// Ranges whose requests make no progress.
    stalled: Vec<Stalled>,
    /// The places where pages ended in the middle of a second.
    walks: Vec<Walk>,
    honoured: HonouredAbilities,
    lateness: Lateness,
    evidence: Evidence,
    probes: Probes,
    rung_stats: Vec<RungStats>,
    trials: Trials,
    /// The time of the last look at an age that found an edit or a deletion, in Unix ms, by age in
    /// ms.
    changes: BTreeMap<i64, i64>,
    counters: Counters,
    suspects: VecDeque<Suspect>,
    rechecks: Vec<Recheck>,
    rate_per_s: f64,
    /// The number of new posts per second, averaged over a day.
    daily_rate_per_s: f64,
    /// The time covered by that average, in s.
    rated_s: f64,
    new_per_poll: f64,
    /// Set before each step.
    #[serde(skip)]
    quota: QuotaView,
    /// The local time minus the server's time in ms, with an error of up to a second and a round
    /// trip.
    clock_lead_ms: i64,
    /// True if an answer has shown that since this machine was loaded. The clock may have been set
    /// before.
    #[serde(skip)]
    is_lead_known: Derived<bool>,
    ahead: Ahead,
    /// Computed again after each load.
    #[serde(skip)]
    decision: Derived<Option<Decision>>,
    pace: Pace,
    errors: Errors,
    polls: Polls,
    /// True if the session holds the pages of a backlog: see [`Machine::is_catching_up`].
    is_catching_up: bool,
}

/// The machine's next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Fetch a page.
    Fetch(Fetch),
    /// Look up a post that was missing from a page that should list it.
    LookUp(UpstreamId),
    /// Wait: there is nothing to do yet.
    Wait {
        /// The time of the next call, in Unix ms by the local clock.
        until_ms: i64,
    },
}

/// The result of storing a page's posts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// For each listed post, true if no page of this source had shown it before. A post that only a
    /// stream has shown counts as new: it proves nothing, and lateness measures when pages show
    /// posts.
    pub new: Vec<bool>,
    /// The number of the others that were edited since.
    pub edited: u64,
    /// The stored posts inside the stretch of a look that are not on its page and not known to be
    /// deleted.
    pub absent: Vec<UpstreamId>,
    /// The newest post below [`Machine::nothing_below`] that a page has shown and that is not known
    /// to be deleted, if there is one.
    pub live_below: Option<Key>,
}

/// Totals since the source began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The number of requests sent.
    pub requests: u64,
    /// The number of posts in all answers.
    pub fetched: u64,
    /// The number of posts that pages showed first, including history.
    pub stored: u64,
    /// The number of posts stored as history.
    pub history: u64,
    /// The number of posts that only the overlap caught. A poll from the newest ID would have
    /// missed them.
    pub caught_by_overlap: u64,
    /// The number of posts that only a rung caught.
    pub caught_by_rescan: u64,
    /// The number of edits seen.
    pub edited: u64,
    /// The number of deletions confirmed by a look-up.
    pub deleted: u64,
    /// The number of posts missing from a page that a look-up still found, or that are hidden from
    /// this reader.
    pub hidden: u64,
    /// The number of look-ups of absent posts that proved nothing in the end.
    pub not_confirmed: u64,
    /// The number of absent posts that were not looked up because too many were waiting.
    pub suspects_dropped: u64,
    /// The number of failed requests.
    pub failures: u64,
}

/// State that is derived from the rest of a machine or from the process. It does not count for
/// equality.
#[derive(Debug, Clone, Default)]
struct Derived<T>(T);

impl<T> PartialEq for Derived<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The current choice, and the inputs for which it was made.
#[derive(Debug, Clone)]
struct Decision {
    choice: Choice,
    every_ms: i64,
    at_ms: i64,
    /// The number of pages read since.
    pages: u32,
    /// True if a post arrived that the choice would not have read.
    is_refuted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct History {
    /// True if an empty timeline was seen before its first post.
    seen_empty: bool,
    /// The number of posts still to fetch, for [`Backfill::Count`].
    left: Option<u64>,
    /// The beginning of history, for [`Backfill::Duration`], in Unix ms.
    since_ms: Option<i64>,
    /// The time at which that was first seen, in Unix ms by the server's clock.
    #[serde(default)]
    empty_since_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Pace {
    last_poll_ms: Option<i64>,
    last_request_ms: Option<i64>,
    last_was_poll: bool,
    /// The wait before any request.
    blocked: Deadline,
    /// The wait before any request except polls.
    work_blocked: Deadline,
    /// The number of consecutive failures of the server or its connection, for any request.
    server_failures: u32,
    /// The number of consecutive unusable answers to polls.
    poll_failures: u32,
    /// The number of consecutive unusable answers to other requests.
    work_failures: u32,
    /// The number of consecutive failed look-ups, which delay nothing else.
    look_up_failures: u32,
    look_ups_blocked: Deadline,
    /// The number of recent requests, and of those of rungs above the second look among them.
    recent: u32,
    recent_rungs: u32,
}

impl Machine {
    /// The order of the source's IDs; `None` until the first post is seen.
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

    /// The measured lateness.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// The results of each rung, the second look first.
    pub fn rung_stats(&self) -> &[RungStats] {
        &self.rung_stats
    }

    /// Totals since the source began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The current error of the source, or its last one.
    pub fn last_error(&self) -> Option<&LastError> {
        self.errors.last()
    }

    /// The error that now prevents reading the source: of its polls, otherwise of its other pages.
    pub fn ongoing_error(&self) -> Option<&LastError> {
        self.errors.ongoing()
    }

    /// Records the reason why the server has no stream of the timeline for now, or that it has one.
    /// The time is in Unix ms.
    pub fn stream_missing(&mut self, failure: Option<&Failure>, now_ms: i64) {
        match failure {
            Some(failure) => self.errors.failed(FailedRequest::Stream, failure, now_ms),
            None => self.errors.end(FailedRequest::Stream),
        }
    }

    /// True if the last poll failed.
    pub fn polls_fail(&self) -> bool {
        self.errors.polls_fail()
    }

    /// The recent results of polls.
    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    /// The remaining quota at the last step.
    pub fn quota(&self) -> QuotaView {
        self.quota
    }

    /// Sets the remaining quota for later plans.
    pub fn set_quota(&mut self, quota: QuotaView) {
        self.quota = quota;
    }

    /// The recent number of new posts per second.
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// True if a poll found more posts than its page contains. Its pages are held until all are
    /// read. Until then, neither the coverage nor the time of the last poll shows how far the
    /// source is read. The next committed poll ends it.
    pub fn is_catching_up(&self) -> bool {
        self.is_catching_up
    }

    /// Records that the page of a poll is held.
    pub(super) fn catch_up(&mut self) {
        self.is_catching_up = true;
    }

    /// Adopts the requests that another state of this machine has sent since, and their results.
    pub(super) fn adopt_requests(&mut self, other: &Self) {
        // A poll may have been requested meanwhile.
        let last_poll_ms = self.pace.last_poll_ms;
        self.pace = Pace {
            last_poll_ms,
            // The fills belong to their poll. Another request may come before the next one.
            last_was_poll: true,
            ..other.pace.clone()
        };
        self.errors.clone_from(&other.errors);
        self.counters.requests = other.counters.requests;
        self.counters.failures = other.counters.failures;
    }

    /// True if a first page was applied. From then on others may read the source's entries, while
    /// its history is still being fetched.
    pub fn is_readable(&self) -> bool {
        let is_begun = self.ledger.frontier().is_some() || self.history.seen_empty;
        is_begun || self.honoured.disorder.is_some()
    }

    /// The time since which the timeline is empty, in Unix ms by the server's clock; `None` once a
    /// page has shown a post.
    pub fn empty_since_ms(&self) -> Option<i64> {
        let is_empty = self.ledger.frontier().is_none();
        self.history.empty_since_ms.filter(|_| is_empty)
    }

    /// True if a crash that replaced this machine by `stored` would lose only measurements: the
    /// ledger, the pending history, the pending look-ups and the errors are equal.
    pub fn is_as_durable_as(&self, stored: &Self) -> bool {
        self.ledger == stored.ledger
            && self.history == stored.history
            && self.suspects == stored.suspects
            && self.empty_ranges == stored.empty_ranges
            && self.errors == stored.errors
    }

    /// The evidence from repeated reads without result.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The local clock's time minus the server's in ms, accurate to a second and a round trip.
    /// `None` if answers do not contain the server's time, so that the local clock must be right.
    pub fn clock_lead_ms(&self) -> Option<i64> {
        self.ahead.is_dated().then_some(self.clock_lead_ms)
    }

    /// Uses the lateness of another source of the same instance as a prior, if this one has
    /// measured none. It influences the plan, never the bound.
    pub fn assume(&mut self, other: &Lateness) {
        if self.lateness.is_empty() && !other.is_empty() {
            self.lateness = other.as_prior(PRIOR_POSTS);
        }
    }

    /// The plan for the measurements so far, with its reasons.
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

    /// The last chosen overlap and looks.
    pub fn choice(&self) -> Option<&Choice> {
        self.decision.0.as_ref().map(|decision| &decision.choice)
    }

    /// Chooses overlap and looks again, if enough was read since, or if the choice was refuted.
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

    /// The ages of rungs that are kept for the edits and deletions that they find.
    fn kept_ms(&self, settings: &Settings, now_ms: i64) -> Vec<i64> {
        if settings.refreshed {
            return Vec::new();
        }
        let lately = now_ms - CHANGES_MS;
        let finds = |age_ms: &i64| self.changes.get(age_ms).is_some_and(|at| *at > lately);
        let ages = settings.rungs.iter().map(|rung| rung.age_ms);
        ages.filter(finds).collect()
    }

    /// The tolerance for IDs ahead of the server's time, in ms. On some servers they always are.
    fn tolerance_ms(&self) -> i64 {
        TOLERANCE_MS.max(self.lateness.newest_ahead_ms.saturating_mul(4))
    }

    /// Requests that the open gap that begins at `low` be filled. Returns `false` if there is none.
    pub fn request_fill(&mut self, low: &Key) -> bool {
        self.ledger.request_fill(low)
    }

    /// The same, by the ID at which the gap begins in reports.
    pub fn request_fill_at(&mut self, low: &UpstreamId) -> bool {
        let key = self.scheme.and_then(|scheme| scheme.key(low).ok());
        key.is_some_and(|key| self.request_fill(&key))
    }

    /// True if everything below `before_ms` (Unix ms by the local clock) is settled:
    /// [`Machine::unsettled`] is empty, and no backlog is being read.
    pub fn is_settled(&self, settings: &Settings, before_ms: i64, rungs: usize) -> bool {
        !self.is_catching_up && self.unsettled(settings, before_ms, rungs).next().is_none()
    }

    /// The unsettled ranges below `before_ms` (Unix ms by the local clock): open gaps that must be
    /// filled, and ranges that wait for one of the first `rungs` rungs. If that is only the second
    /// look, the look that [`Machine::next`] takes while settling is enough.
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

/// A choice is valid for this number of pages, within a minimum and a maximum time.
const PAGES_PER_DECISION: u32 = 100;
const MIN_DECISION_MS: i64 = 60_000;
const DECISION_MS: i64 = 3_600_000;
/// The rate of posts is known once polls have covered this time of a timeline, in s.
const RATED_S: f64 = 60.0;
/// The weight of a prior from other sources, in posts.
const PRIOR_POSTS: f32 = 400.0;
/// Edits and deletions that a rung found keep it for this time.
const CHANGES_MS: i64 = 30 * 86_400_000;
const TOLERANCE_MS: i64 = 60_000;
