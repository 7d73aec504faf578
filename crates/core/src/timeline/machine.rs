//! The machine of one source: what to do next, and what an answer means.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    backoff::backoff_ms,
    clamp,
    ladder::Yield,
    lateness::Lateness,
    ledger::{Gap, GapKind, Ledger, Stretch},
    plan::{self, Measured, Plan},
    request::{AnchorQuery, Bounds, Fetch, Purpose, Reading, Request},
    scheme::IdScheme,
    settings::{Backfill, Settings},
    throttles::Throttles,
};
use crate::{
    answer::{Abilities, AnswerFacts, Failure, FailureKind},
    upstream_id::{Key, UpstreamId},
};

/// A source's whole state, kept in the store with its posts.
///
/// It is changed by facts and asked for steps; it never acts. What it learns
/// from an answer is committed together with the answer's posts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// For each listed post, whether this source had not had it before.
    pub new: Vec<bool>,
    /// How many of the others were edited since.
    pub edited: u64,
    /// Posts that are stored, not known to be deleted, inside the stretch that
    /// a look read, and not on its page.
    pub absent: Vec<UpstreamId>,
}

/// Sums since the source began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Requests that were sent.
    pub requests: u64,
    /// Posts in all answers.
    pub fetched: u64,
    /// Posts stored, history included.
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
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Pace {
    last_poll_ms: Option<i64>,
    last_request_ms: Option<i64>,
    last_was_poll: bool,
    blocked_until_ms: i64,
    work_blocked_until_ms: i64,
    poll_failures: u32,
    work_failures: u32,
    /// Requests lately, and those of rungs above the second look among them.
    recent: u32,
    recent_rungs: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            scheme: None,
            ledger: Ledger::default(),
            retrieved_at_ms: None,
            history: History::default(),
            lateness: Lateness::default(),
            yields: Vec::new(),
            counters: Counters::default(),
            suspects: VecDeque::new(),
            rate_per_s: 0.0,
            new_per_poll: 0.0,
            throttles: Throttles::default(),
            clock_lead_ms: 0,
            pace: Pace::default(),
            last_error: None,
        }
    }
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

    /// Whether the history that was asked for is there: from then on the
    /// source's entries may be read by others.
    pub fn is_readable(&self) -> bool {
        if self.ledger.frontier().is_none() {
            return self.history.seen_empty;
        }
        !self.ledger.gaps().iter().any(is_history)
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

    /// The next step at this time, Unix ms by the local clock.
    ///
    /// With `settling`, looks are taken as soon as their age allows, instead
    /// of when enough has come together.
    pub fn next(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        now_ms: i64,
        settling: bool,
    ) -> Step {
        let plan = self.make_plan(settings, abilities, now_ms, false);
        let blocked_until_ms = self
            .throttles
            .blocked_until_ms(now_ms)
            .unwrap_or(0)
            .max(self.pace.blocked_until_ms);
        let spacing_ms = settings.spacing_ms.max(self.throttles.spacing_ms(now_ms));
        let earliest_ms = self
            .pace
            .last_request_ms
            .map_or(0, |last_ms| last_ms + spacing_ms)
            .max(blocked_until_ms);
        if now_ms < earliest_ms {
            return Step::Wait {
                until_ms: earliest_ms,
            };
        }
        let poll_due_ms = self
            .pace
            .last_poll_ms
            .map_or(now_ms, |last_ms| last_ms + plan.every_ms);
        let poll_is_due = poll_due_ms <= now_ms;
        // Whatever the quota, every second request may be something else than
        // a poll, or gaps and second looks would starve.
        if poll_is_due && !self.pace.last_was_poll {
            return self.poll(&plan, abilities);
        }
        let work = if now_ms < self.pace.work_blocked_until_ms {
            Step::Wait {
                until_ms: self.pace.work_blocked_until_ms,
            }
        } else {
            self.work(settings, abilities, &plan, now_ms, settling)
        };
        match work {
            Step::Wait { .. } if poll_is_due => self.poll(&plan, abilities),
            Step::Wait { until_ms } => Step::Wait {
                until_ms: until_ms.min(poll_due_ms),
            },
            step => step,
        }
    }

    /// Notes that the step's request goes out now, Unix ms by the local clock.
    pub fn sent(&mut self, step: &Step, now_ms: i64) {
        let (is_poll, is_rung) = match step {
            Step::Fetch(fetch) => (
                fetch.purpose == Purpose::Poll,
                matches!(fetch.purpose, Purpose::Look { rung: 1.., .. }),
            ),
            Step::LookUp(_) => (false, true),
            Step::Wait { .. } => return,
        };
        self.counters.requests += 1;
        self.throttles.spend();
        self.pace.last_request_ms = Some(now_ms);
        self.pace.last_was_poll = is_poll;
        if is_poll {
            self.pace.last_poll_ms = Some(now_ms);
        }
        self.pace.recent += 1;
        self.pace.recent_rungs += u32::from(is_rung);
        if self.pace.recent >= 200 {
            self.pace.recent /= 2;
            self.pace.recent_rungs /= 2;
        }
    }

    /// Whether the posts of a request are history, whose entries take their
    /// IDs from creation time.
    pub fn is_history(&self, request: &Request) -> bool {
        match &request.purpose {
            Purpose::Poll => self.ledger.frontier().is_none() && !self.history.seen_empty,
            Purpose::Fill { low, .. } => self
                .ledger
                .gaps()
                .iter()
                .any(|gap| gap.low == *low && is_history(gap)),
            Purpose::Look { .. } => false,
        }
    }

    /// The range in which stored posts that a page does not list are suspected
    /// of being deleted: what the page proves. `None` if it proves nothing.
    pub fn absence_range(&self, request: &Request, reading: &Reading) -> Option<(Key, Key)> {
        reading
            .stretch(request)
            .map(|stretch| (stretch.low, stretch.high))
    }

    /// Takes in a page that was checked and whose posts are stored in the same
    /// commit as the machine.
    pub fn page(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        request: &Request,
        reading: &Reading,
        facts: &AnswerFacts,
        stored: &Stored,
    ) {
        let plan = self.make_plan(settings, abilities, facts.received_at_ms, false);
        self.scheme = self.scheme.or(reading.scheme);
        self.heard(facts);
        self.succeeded(&request.purpose);
        let new = stored.new.iter().filter(|is_new| **is_new).count() as u64;
        if self.is_history(request) {
            self.counters.history += new;
        }
        self.counters.fetched += reading.keys.len() as u64;
        self.counters.stored += new;
        self.counters.edited += stored.edited;
        self.measure(&plan, request, reading, stored);
        let rung = match request.purpose {
            Purpose::Look { rung, .. } => rung,
            Purpose::Poll | Purpose::Fill { .. } => 0,
        };
        self.suspect(rung, &stored.absent);
        match &request.purpose {
            Purpose::Poll => self.polled(settings, &plan, reading, request, new),
            Purpose::Fill { low, high } => self.filled(&plan, low, high, reading, request),
            Purpose::Look { rung, low, high } => {
                let posts = reading.keys.len() as u64;
                self.yield_of(*rung).read(posts, new, stored.edited);
                self.looked(&plan, *rung, low, high, reading, request);
            }
        }
    }

    /// Takes in a request that failed. `chance` is any random number: it
    /// spreads the delays of sources that fail together.
    pub fn failed(
        &mut self,
        settings: &Settings,
        purpose: Option<&Purpose>,
        failure: &Failure,
        now_ms: i64,
        chance: u64,
    ) {
        self.counters.failures += 1;
        self.last_error = Some(LastError {
            kind: failure.kind,
            message: failure.message.clone(),
            at_ms: now_ms,
            over: false,
        });
        if let Some(mut throttle) = failure.throttle {
            throttle.reset_at_ms += self.clock_lead_ms;
            self.throttles.report(throttle, now_ms);
        }
        let is_poll = matches!(purpose, Some(Purpose::Poll));
        let about_the_server = matches!(
            failure.kind,
            FailureKind::Unreachable
                | FailureKind::TimedOut
                | FailureKind::Tls
                | FailureKind::PrivateAddress
                | FailureKind::Unauthorized
                | FailureKind::Throttled
                | FailureKind::ServerError
        );
        let failures = if is_poll {
            &mut self.pace.poll_failures
        } else {
            &mut self.pace.work_failures
        };
        *failures = failures.saturating_add(1);
        let wait_ms = failure.retry_after_ms.unwrap_or(0).max(backoff_ms(
            settings.every_ms,
            *failures,
            chance,
        ));
        let until_ms = now_ms.saturating_add(wait_ms);
        // The next try asks differently, in case the answer's content stays bad.
        if !about_the_server
            && let Some(Purpose::Fill { low, high } | Purpose::Look { low, high, .. }) = purpose
        {
            self.ledger.tried(low, high);
        }
        if is_poll || about_the_server {
            self.pace.blocked_until_ms = until_ms;
        } else {
            self.pace.work_blocked_until_ms = until_ms;
        }
    }

    /// Takes in what a look-up of an absent post found.
    pub fn looked_up(&mut self, id: &UpstreamId, gone: bool, facts: &AnswerFacts) {
        self.heard(facts);
        self.pace.work_failures = 0;
        let rung = self
            .suspects
            .iter()
            .position(|suspect| suspect.id == *id)
            .and_then(|index| self.suspects.remove(index))
            .map(|suspect| suspect.rung);
        if gone {
            self.counters.deleted += 1;
            if let Some(rung) = rung {
                self.yield_of(rung).confirmed_deletion();
            }
        } else {
            self.counters.hidden += 1;
        }
    }

    /// Asks for the open gap that begins at `low` to be filled. `false` if
    /// there is none.
    pub fn want(&mut self, low: &Key) -> bool {
        self.ledger.want(low)
    }

    fn poll(&self, plan: &Plan, abilities: Abilities) -> Step {
        Step::Fetch(Fetch {
            purpose: Purpose::Poll,
            bounds: Bounds::Head {
                since: self.since(plan),
            },
            limit: abilities.page_limit,
        })
    }

    /// Where a poll reads from: the clamp and, on a busy source, low enough
    /// to include the newest known post, which shows that the page meets what
    /// is stored. On a quiet one that would fetch it at every poll; there, a
    /// page with news opens a gap that one more request closes.
    fn since(&self, plan: &Plan) -> Option<Key> {
        let scheme = self.scheme?;
        let latest = self.ledger.frontier()?;
        let clamped = self
            .retrieved_at_ms
            .and_then(|at_ms| clamp::since_id(&scheme, latest, at_ms, plan.overlap_ms))
            .unwrap_or_else(|| latest.clone());
        if self.new_per_poll < BUSY_POSTS_PER_POLL {
            return Some(clamped);
        }
        match scheme.just_below(latest) {
            Some(under) => Some(clamped.min(under)),
            None => Some(clamped),
        }
    }

    fn work(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        plan: &Plan,
        now_ms: i64,
        settling: bool,
    ) -> Step {
        let server_now_ms = now_ms - self.clock_lead_ms;
        if let Some(step) = self.due_look(plan, abilities, server_now_ms, settling, 0) {
            return step;
        }
        if let Some(step) = self.due_fill(settings, abilities) {
            return step;
        }
        if let Some(suspect) = self.suspects.front()
            && self.within_share(settings, now_ms)
        {
            return Step::LookUp(suspect.id.clone());
        }
        for rung in 1..plan.ladder.len() {
            self.pass_idle_ranges(plan, server_now_ms, settling, rung);
            if !self.within_share(settings, now_ms) {
                self.pass_overdue_ranges(plan, server_now_ms, rung);
                continue;
            }
            if let Some(step) = self.due_look(plan, abilities, server_now_ms, settling, rung) {
                return step;
            }
        }
        // What is due already and was not taken waits for its share of the
        // quota: the next poll is early enough to ask again.
        let due_ms = self
            .ledger
            .gaps()
            .iter()
            .filter_map(|gap| due_at_ms(gap, plan, settling))
            .filter(|due_ms| *due_ms > server_now_ms)
            .min();
        Step::Wait {
            until_ms: due_ms.map_or(i64::MAX, |due_ms| due_ms + self.clock_lead_ms),
        }
    }

    fn due_look(
        &self,
        plan: &Plan,
        abilities: Abilities,
        server_now_ms: i64,
        settling: bool,
        wanted_rung: usize,
    ) -> Option<Step> {
        self.ledger.gaps().iter().find_map(|gap| {
            let (low, high) = self.due_range(gap, plan, server_now_ms, settling, wanted_rung)?;
            let GapKind::Provisional { tries, .. } = gap.kind else {
                return None;
            };
            Some(Step::Fetch(Fetch {
                bounds: Bounds::Back {
                    below: high.clone(),
                    anchor: anchor_for(&low, tries),
                },
                purpose: Purpose::Look {
                    rung: wanted_rung,
                    low,
                    high,
                },
                limit: abilities.page_limit,
            }))
        })
    }

    /// The part of a range that a rung may read now.
    fn due_range(
        &self,
        gap: &Gap,
        plan: &Plan,
        server_now_ms: i64,
        settling: bool,
        wanted_rung: usize,
    ) -> Option<(Key, Key)> {
        let GapKind::Provisional { rung, .. } = gap.kind else {
            return None;
        };
        if rung != wanted_rung || due_at_ms(gap, plan, settling)? > server_now_ms {
            return None;
        }
        let old_enough_ms = server_now_ms - plan.ladder.age_ms(rung)?;
        let high = match self.scheme?.floor(old_enough_ms) {
            Some(edge) => edge.min(gap.high.clone()),
            None => gap.high.clone(),
        };
        (gap.low < high).then(|| (gap.low.clone(), high))
    }

    fn due_fill(&self, settings: &Settings, abilities: Abilities) -> Option<Step> {
        // Gaps before history: what is missing now comes first.
        let wanted = |gap: &&Gap| match gap.kind {
            GapKind::Open { wanted, .. } => wanted || settings.fill_gaps,
            _ => false,
        };
        let gap = self
            .ledger
            .gaps()
            .iter()
            .filter(wanted)
            .min_by_key(|gap| is_history(gap))?;
        let GapKind::Open { history, tries, .. } = gap.kind else {
            return None;
        };
        // From below and from above in turn, each time from an older anchor.
        let anchor = (!history)
            .then(|| anchor_for(&gap.low, tries / 2))
            .flatten();
        let bounds = match anchor {
            Some(anchor) if abilities.just_above && tries % 2 == 0 => Bounds::Forward {
                anchor,
                else_below: gap.high.clone(),
            },
            anchor => Bounds::Back {
                below: gap.high.clone(),
                anchor,
            },
        };
        Some(Step::Fetch(Fetch {
            purpose: Purpose::Fill {
                low: gap.low.clone(),
                high: gap.high.clone(),
            },
            bounds,
            limit: abilities.page_limit,
        }))
    }

    fn within_share(&self, settings: &Settings, now_ms: i64) -> bool {
        if self.throttles.spacing_ms(now_ms) <= settings.spacing_ms {
            return true;
        }
        self.pace.recent_rungs * 100 <= self.pace.recent.max(1) * settings.rung_share_percent
    }

    /// Lets due ranges pass a rung that has long found nothing.
    fn pass_idle_ranges(&mut self, plan: &Plan, server_now_ms: i64, settling: bool, rung: usize) {
        while self.yield_of(rung).is_idle() {
            let due = self
                .ledger
                .gaps()
                .iter()
                .find_map(|gap| self.due_range(gap, plan, server_now_ms, settling, rung));
            let Some((low, high)) = due else { return };
            self.ledger.skip_rung(&low, &high, rung, &plan.ladder);
            self.yield_of(rung).passed_over();
        }
    }

    /// Lets ranges pass that the quota's share kept waiting a whole period
    /// beyond their due time.
    fn pass_overdue_ranges(&mut self, plan: &Plan, server_now_ms: i64, rung: usize) {
        let late_ms = server_now_ms - plan.ladder.period_ms(rung);
        while let Some((low, high)) = self
            .ledger
            .gaps()
            .iter()
            .find_map(|gap| self.due_range(gap, plan, late_ms, false, rung))
        {
            self.ledger.skip_rung(&low, &high, rung, &plan.ladder);
            self.yield_of(rung).skipped_quota += 1;
        }
    }

    fn polled(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        reading: &Reading,
        request: &Request,
        new: u64,
    ) {
        let (Some(scheme), Some(newest), Some(oldest)) =
            (self.scheme, reading.newest(), reading.oldest())
        else {
            if self.ledger.frontier().is_none() && reading.keys.is_empty() {
                self.history.seen_empty = true;
            }
            self.new_per_poll *= 1.0 - NEW_PER_POLL_WEIGHT;
            return;
        };
        self.learn_rate(reading, new);
        if self.ledger.frontier().is_none() {
            let origin = self.first_origin(settings, &scheme, oldest, reading);
            let is_history = !self.history.seen_empty;
            self.ledger.begin(origin, newest.clone(), is_history);
        } else {
            self.ledger.extend(newest.clone());
        }
        self.retrieved_at_ms = Some(reading.retrieved_at_ms);
        self.read(plan, reading, request);
        if self.history.left == Some(0) {
            self.ledger.begin_later(oldest);
        }
    }

    /// Where coverage begins, by the history that was asked for.
    fn first_origin(
        &mut self,
        settings: &Settings,
        scheme: &IdScheme,
        oldest: &Key,
        reading: &Reading,
    ) -> Key {
        if self.history.seen_empty {
            return Key::lowest();
        }
        match settings.backfill {
            Backfill::None => oldest.clone(),
            Backfill::Count(count) => {
                self.history.left = Some(count.saturating_sub(reading.keys.len() as u64));
                Key::lowest()
            }
            Backfill::Duration(ms) => {
                let since_ms = reading.retrieved_at_ms - ms;
                self.history.since_ms = Some(since_ms);
                scheme.floor(since_ms).unwrap_or_else(Key::lowest)
            }
            Backfill::All => Key::lowest(),
        }
    }

    fn filled(&mut self, plan: &Plan, low: &Key, high: &Key, reading: &Reading, request: &Request) {
        if request.just_above.is_some() {
            // A page that begins above the anchor does not meet it.
            let joined = reading.oldest().is_some_and(|oldest| oldest <= low);
            let nearer = reading.newest().is_some_and(|newest| newest > low);
            if joined && nearer {
                self.read(plan, reading, request);
                self.ledger.progressed(low, high);
            } else {
                self.ledger.tried(low, high);
            }
            return;
        }
        let was_history = self.is_history(request);
        if self.read(plan, reading, request) {
            self.history.bottom_seen = 0;
            self.ledger.progressed(low, high);
            if was_history {
                self.shorten_history(reading);
            }
            return;
        }
        self.ledger.tried(low, high);
        if self.at_bottom(request) {
            if was_history || low.is_lowest() {
                self.read_empty(plan, low, high, reading);
            } else {
                self.ledger.give_up(low, high);
            }
        }
    }

    /// Ends the history where the count or the time that was asked for is
    /// reached and the ledger's bounds cannot say so.
    fn shorten_history(&mut self, reading: &Reading) {
        let Some(oldest) = reading.oldest().cloned() else {
            return;
        };
        if let Some(left) = &mut self.history.left {
            *left = left.saturating_sub(reading.keys.len() as u64);
            if *left == 0 {
                self.ledger.begin_later(&oldest);
            }
        }
    }

    /// Tells that a page of history holds a post written at this time, Unix
    /// ms: where IDs carry no time, this ends a history by duration.
    pub fn history_reached(&mut self, reading: &Reading, created_at_ms: i64) {
        if self
            .history
            .since_ms
            .is_some_and(|since_ms| created_at_ms < since_ms)
            && self.scheme.is_some_and(|scheme| scheme.layout.is_none())
            && let Some(oldest) = reading.oldest()
            && self
                .ledger
                .gaps()
                .iter()
                .any(|gap| is_history(gap) && gap.high <= *oldest)
        {
            self.ledger.begin_later(oldest);
        }
    }

    fn looked(
        &mut self,
        plan: &Plan,
        rung: usize,
        low: &Key,
        high: &Key,
        reading: &Reading,
        request: &Request,
    ) {
        if self.read(plan, reading, request) {
            self.history.bottom_seen = 0;
            self.ledger.progressed(low, high);
            if !self.waits_for(rung, low) {
                self.yield_of(rung).finished();
            }
            return;
        }
        self.ledger.tried(low, high);
        if self.at_bottom(request) {
            if low.is_lowest() {
                self.read_empty(plan, low, high, reading);
            } else {
                self.ledger.skip_rung(low, high, rung, &plan.ladder);
                self.yield_of(rung).unreachable += 1;
            }
        }
    }

    /// Takes a range at the timeline's very bottom as read: there was nothing
    /// in it yet. What comes late into it is found by the rungs.
    fn read_empty(&mut self, plan: &Plan, low: &Key, high: &Key, reading: &Reading) {
        if let Some(scheme) = self.scheme {
            let stretch = Stretch {
                low: low.clone(),
                high: high.clone(),
                at_ms: reading.retrieved_at_ms,
            };
            self.ledger.read(&stretch, &scheme, &plan.ladder);
        }
    }

    /// Whether the range that begins at `low` still waits for a rung.
    fn waits_for(&self, wanted_rung: usize, low: &Key) -> bool {
        self.ledger.gaps().iter().any(|gap| {
            gap.low == *low
                && matches!(gap.kind, GapKind::Provisional { rung, .. } if rung == wanted_rung)
        })
    }

    /// Whether this was the second empty answer in a row to a request that
    /// nothing bounds from below: the upstream shows nothing there.
    fn at_bottom(&mut self, request: &Request) -> bool {
        if request.since.is_some() {
            return false;
        }
        self.history.bottom_seen += 1;
        if self.history.bottom_seen < EMPTY_ANSWERS_AT_BOTTOM {
            return false;
        }
        self.history.bottom_seen = 0;
        true
    }

    /// Takes what a page proves into the ledger. `false` if it proves nothing.
    fn read(&mut self, plan: &Plan, reading: &Reading, request: &Request) -> bool {
        let (Some(scheme), Some(stretch)) = (self.scheme, reading.stretch(request)) else {
            return false;
        };
        self.ledger.read(&stretch, &scheme, &plan.ladder);
        true
    }

    /// Lateness of the posts that are new.
    fn measure(&mut self, plan: &Plan, request: &Request, reading: &Reading, stored: &Stored) {
        let (Some(scheme), Some(latest), Some(read_before_ms)) = (
            self.scheme,
            self.ledger.frontier().cloned(),
            self.retrieved_at_ms,
        ) else {
            return;
        };
        let latest_ms = scheme.time_ms(&latest);
        for (key, is_new) in reading.keys.iter().zip(&stored.new) {
            if !is_new {
                continue;
            }
            match request.purpose {
                Purpose::Poll if *key < latest => self.counters.caught_by_overlap += 1,
                Purpose::Look { .. } => self.counters.caught_by_rescan += 1,
                _ => {}
            }
            let (Some(latest_ms), Some(time_ms)) = (latest_ms, scheme.time_ms(key)) else {
                continue;
            };
            let at_most_ms = reading.answered_by_ms - time_ms;
            match request.purpose {
                Purpose::Poll => self.lateness.add(
                    read_before_ms - time_ms,
                    at_most_ms,
                    latest_ms.max(read_before_ms) - time_ms,
                ),
                // The reads before did not show it, the last of them at this age.
                Purpose::Look { rung, .. } => {
                    let unseen_ms = match rung.checked_sub(1) {
                        Some(below) => plan.ladder.age_ms(below).unwrap_or(0),
                        None => plan.overlap_ms + 1,
                    };
                    self.lateness.add(unseen_ms, at_most_ms, unseen_ms);
                }
                Purpose::Fill { .. } => {}
            }
        }
        if let (Purpose::Poll, Some(newest)) = (&request.purpose, reading.keys.first())
            && let Some(time_ms) = scheme.time_ms(newest)
        {
            self.lateness.newest_ahead_ms = time_ms - reading.answered_by_ms;
        }
    }

    fn learn_rate(&mut self, reading: &Reading, new: u64) {
        self.new_per_poll += NEW_PER_POLL_WEIGHT * (new as f64 - self.new_per_poll);
        let Some(before_ms) = self.retrieved_at_ms else {
            return;
        };
        let elapsed_s = (reading.retrieved_at_ms - before_ms) as f64 / 1000.0;
        if elapsed_s > 0.0 {
            let weight = 1.0 - (-elapsed_s / RATE_MEMORY_S).exp();
            self.rate_per_s += weight * (new as f64 / elapsed_s - self.rate_per_s);
        }
    }

    fn heard(&mut self, facts: &AnswerFacts) {
        let retrieved_at_ms = super::server_time::retrieved_at_ms(facts);
        self.clock_lead_ms = (facts.sent_at_ms - retrieved_at_ms).max(0);
        if let Some(mut throttle) = facts.throttle {
            // The window ends by the server's clock; ours may stand elsewhere.
            if let Some(date_ms) = facts.date_ms {
                throttle.reset_at_ms += facts.received_at_ms - date_ms;
            }
            self.throttles.report(throttle, facts.received_at_ms);
        }
    }

    fn succeeded(&mut self, purpose: &Purpose) {
        if *purpose == Purpose::Poll {
            self.pace.poll_failures = 0;
        } else {
            self.pace.work_failures = 0;
        }
        if self.pace.poll_failures == 0
            && self.pace.work_failures == 0
            && let Some(error) = &mut self.last_error
        {
            error.over = true;
        }
    }

    fn suspect(&mut self, rung: usize, absent: &[UpstreamId]) {
        for id in absent {
            if self.suspects.iter().any(|suspect| suspect.id == *id) {
                continue;
            }
            if self.suspects.len() >= MOST_SUSPECTS {
                self.counters.suspects_dropped += 1;
                continue;
            }
            self.suspects.push_back(Suspect {
                id: id.clone(),
                rung,
            });
        }
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

/// The anchor of a range: the newest stored post at or below its low end, and
/// after each try in vain one twice as far down.
fn anchor_for(low: &Key, tries: u32) -> Option<AnchorQuery> {
    (!low.is_lowest()).then(|| AnchorQuery {
        at_most: low.clone(),
        skip: (1_u32 << tries.min(20)) - 1,
    })
}

/// When a provisional range is due for its rung, Unix ms by the server's
/// clock: when enough has come together above its oldest ID.
fn due_at_ms(gap: &Gap, plan: &Plan, settling: bool) -> Option<i64> {
    let GapKind::Provisional {
        rung,
        from_ms,
        until_ms,
        ..
    } = gap.kind
    else {
        return None;
    };
    let age_ms = plan.ladder.age_ms(rung)?;
    Some(if settling {
        until_ms + age_ms
    } else {
        from_ms + age_ms + plan.ladder.period_ms(rung)
    })
}

/// From this many new posts a poll on, a poll reads its anchor along.
const BUSY_POSTS_PER_POLL: f64 = 0.5;
const NEW_PER_POLL_WEIGHT: f64 = 0.1;
const RATE_MEMORY_S: f64 = 60.0;
const EMPTY_ANSWERS_AT_BOTTOM: u32 = 2;
const MOST_SUSPECTS: usize = 80;
