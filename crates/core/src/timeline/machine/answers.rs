//! The effects of answers and failures on the machine.

use super::{Derived, FailedRequest, Machine, Stored, empty_ranges::EMPTY_FOR_MS, is_history};
use crate::{
    answer::{Abilities, AnswerHeaders, Failure, FailureKind},
    clock::Deadline,
    timeline::{
        backoff::backoff_ms,
        evidence::PAGE_FULL,
        gap_ledger::Provisional,
        plan::Plan,
        reading::Reading,
        request::{Request, RequestPurpose},
        scheme::IdScheme,
        server_time::read_at_ms,
        settings::{Backfill, Settings},
    },
    upstream_id::Key,
};

/// A page with its context.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) plan: &'a Plan,
    pub(super) request: &'a Request,
    pub(super) reading: &'a Reading,
    pub(super) stored: &'a Stored,
    /// The number of its posts that are new.
    pub(super) new: u64,
    /// The smallest age of the second look, in ms.
    pub(super) second_look_ms: i64,
    /// The time of its arrival, in Unix ms by the local clock.
    pub(super) received_at_ms: i64,
}

/// A range in which a page shows only the posts that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsenceRange {
    /// The lower end, inclusive.
    pub low: Key,
    /// The upper end, exclusive.
    pub high: Key,
    /// True if the page should list all existing posts of the range. False if it ends above the
    /// range: the timeline may not reach down to it, so only look-ups show the state of its posts.
    pub is_proven: bool,
    /// Posts of the range that earlier pages showed. The page was read together with them.
    pub shown: Vec<Key>,
}

impl Machine {
    /// True if the posts of a page are history, whose entries take their IDs from the creation
    /// time. For a fill, these are the posts below the range's upper end.
    pub fn is_history(&self, request: &Request, reading: &Reading) -> bool {
        match &request.purpose {
            RequestPurpose::Poll => {
                let is_first = self.ledger.frontier().is_none() && self.honoured.disorder.is_none();
                is_first && !self.was_empty(reading)
            }
            RequestPurpose::Fill { low, .. } => {
                let mut gaps = self.ledger.gaps().iter();
                gaps.any(|gap| gap.low == *low && is_history(gap))
            }
            RequestPurpose::Look { .. }
            | RequestPurpose::Probe { .. }
            | RequestPurpose::Recheck { .. }
            | RequestPurpose::Ahead => false,
        }
    }

    /// The range in which stored posts that a page does not list may be deleted. `None` if the page
    /// proves nothing.
    pub fn absence_range(&self, request: &Request, reading: &Reading) -> Option<AbsenceRange> {
        let below = self.absent_below(request, reading);
        below
            .map(|(low, high)| AbsenceRange {
                low,
                high,
                is_proven: false,
                shown: Vec::new(),
            })
            .or_else(|| {
                let stretch = self.stretch(request, reading)?;
                // A list whose bounds name posts may contain a post elsewhere: snac lists it again
                // at its top after a boost.
                let is_list = self.scheme.is_some_and(|scheme| scheme.names_posts());
                Some(AbsenceRange {
                    low: stretch.low,
                    high: stretch.high,
                    is_proven: !is_list,
                    shown: self.shown_before(request, reading),
                })
            })
    }

    /// Applies a checked page, whose posts are stored in the same commit as the machine.
    pub fn page(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        request: &Request,
        reading: &Reading,
        headers: &AnswerHeaders,
        stored: &Stored,
    ) {
        // With the abilities that were known when the page's posts were stored.
        let covered = match stored.absent[..] {
            [] => None,
            [..] => self.absence_range(request, reading),
        };
        self.decide(settings, abilities, headers.received_at_ms);
        let plan = self.make_plan(settings, abilities, headers.received_at_ms, false);
        self.scheme = self.scheme.or(reading.scheme);
        self.apply_headers(headers);
        self.succeeded(&request.purpose);
        let new = stored.new.iter().filter(|is_new| **is_new).count() as u64;
        if request.purpose == RequestPurpose::Poll {
            self.polls.answered(headers.received_at_ms);
            self.is_catching_up = false;
        }
        if new > 0 {
            self.polls.news_ms = Some(headers.received_at_ms);
        }
        if self.is_history(request, reading) {
            self.counters.history += new;
        }
        self.counters.fetched += reading.keys.len() as u64;
        self.counters.stored += new;
        self.counters.edited += stored.edited;
        self.learn(&plan, request, reading, new, headers);
        let answer = Answer {
            plan: &plan,
            request,
            reading,
            stored,
            new,
            second_look_ms: settings.second_look_ms,
            received_at_ms: headers.received_at_ms,
        };
        self.measure(&answer);
        self.shown_beside_walks(&reading.keys);
        let rung = match request.purpose {
            RequestPurpose::Look { rung, .. } => rung,
            RequestPurpose::Probe { .. } => plan.ladder.len(),
            RequestPurpose::Poll
            | RequestPurpose::Fill { .. }
            | RequestPurpose::Recheck { .. }
            | RequestPurpose::Ahead => 0,
        };
        self.suspect(rung, &stored.absent);
        if let Some(range) = covered.filter(|range| range.is_proven) {
            let received_at_ms = headers.received_at_ms;
            self.recheck_later((range.low, range.high), &stored.absent, received_at_ms);
        }
        if let Some(decision) = &mut self.decision.0 {
            decision.pages += 1;
        }
        match &request.purpose {
            RequestPurpose::Poll => self.polled(settings, &answer),
            RequestPurpose::Fill { low, high } => self.filled(&answer, low, high),
            RequestPurpose::Look { rung, low, high } => {
                let found = self.stats_of(*rung);
                found.found += new;
                found.edited += stored.edited;
                if stored.edited > 0
                    && let Some(age_ms) = plan.ladder.age_ms(*rung)
                {
                    self.changes.insert(age_ms, headers.received_at_ms);
                }
                self.looked(&answer, *rung, low, high);
            }
            RequestPurpose::Probe { age_ms, until_ms } => {
                self.probes.drawn(*age_ms, *until_ms);
                self.read_if_awaited(&answer);
            }
            RequestPurpose::Recheck { low, high } => self.rechecked(&answer, low, high),
            RequestPurpose::Ahead => self.ahead.read(reading.keys.len(), headers.received_at_ms),
        }
    }

    /// Applies a failed request for a page. `random` is any random number. It spreads the delays of
    /// sources that fail together.
    pub fn failed(
        &mut self,
        settings: &Settings,
        purpose: &RequestPurpose,
        failure: &Failure,
        now_ms: i64,
        random: u64,
    ) {
        self.counters.failures += 1;
        let is_poll = matches!(purpose, RequestPurpose::Poll);
        let request = match is_poll {
            true => FailedRequest::Poll,
            false => FailedRequest::Page,
        };
        self.errors.failed(request, failure, now_ms);
        let about_the_server = is_about_the_server(failure.kind);
        let failures = if about_the_server {
            &mut self.pace.server_failures
        } else if is_poll {
            &mut self.pace.poll_failures
        } else {
            &mut self.pace.work_failures
        };
        *failures = failures.saturating_add(1);
        let wait_ms = backoff_ms(settings.every_ms, *failures, random);
        let wait = Deadline::after(now_ms, wait_ms.max(retry_after_ms(failure)));
        // The next attempt uses other bounds, in case this answer's content stays invalid.
        if let RequestPurpose::Fill { low, high } | RequestPurpose::Look { low, high, .. } = purpose
        {
            self.failed_to_read((low, high), failure, now_ms);
        }
        if let RequestPurpose::Recheck { low, high } = purpose {
            self.recheck_failed(low, high, now_ms);
        }
        if is_poll || about_the_server {
            self.pace.blocked = wait;
        } else {
            self.pace.work_blocked = wait;
        }
    }

    fn polled(&mut self, settings: &Settings, answer: &Answer<'_>) {
        let (reading, new) = (answer.reading, answer.new);
        let (Some(scheme), Some(newest), Some(oldest)) =
            (self.scheme, reading.newest(), reading.oldest())
        else {
            if self.ledger.frontier().is_none() && reading.keys.is_empty() {
                self.history.seen_empty = true;
                self.history
                    .empty_since_ms
                    .get_or_insert(reading.read_at_ms);
            }
            self.learn_rate(reading, 0);
            // An empty page also extends coverage.
            self.polled_down_to(answer.request, reading);
            return;
        };
        self.learn_rate(reading, new);
        let top = reading.top(&scheme, newest);
        if self.ledger.frontier().is_none() {
            let entropy =
                scheme.time_ms(newest).unwrap_or(0) ^ reading.answered_by_ms.rotate_left(20);
            self.probes.stir(entropy as u64);
        }
        self.probes
            .came(&answer.plan.probes, new, PAGE_FULL, reading.read_at_ms);
        if self.ledger.frontier().is_none() {
            let oldest = scheme.end_of_time(oldest).min(top.clone());
            let origin = self.first_origin(settings, &scheme, &oldest, reading);
            let is_history = !self.was_empty(reading);
            self.history.seen_empty = !is_history;
            self.ledger.begin(origin.min(top.clone()), top, is_history);
        } else {
            let before = self.ledger.frontier().cloned();
            self.ledger.extend(top);
            // A full page that does not reach down to the overlap leaves it to the gap, if enough
            // requests are available.
            if let (Some(since), Some(before)) = (&answer.request.since_id, before)
                && settings.fill_gaps
                && self.quota.spacing_ms <= settings.spacing_ms
                && *oldest > before
                && *since < before
                && self.is_full(answer.request, reading)
            {
                let since = scheme.begin_of_time(since);
                self.ledger.reopen(&since, &before, &scheme);
            }
        }
        self.polled_down_to(answer.request, reading);
        self.read(answer);
        self.walk_on(answer, (&Key::lowest(), &Key::highest()));
    }

    /// Records the time of an answered poll, and its lower end.
    fn polled_down_to(&mut self, request: &Request, reading: &Reading) {
        self.retrieved_at_ms = Some(reading.retrieved_at_ms);
        self.polled_at_ms = Some(reading.read_at_ms);
        let oldest = reading.oldest().cloned();
        self.polled_from = match &request.since_id {
            Some(since) if !self.is_full(request, reading) => Some(since.clone()),
            _ => oldest,
        };
    }

    /// True if a page may have been cut at its lower end.
    fn is_full(&self, request: &Request, reading: &Reading) -> bool {
        self.honoured.is_full(reading.items, request.page.limit)
    }

    /// The beginning of coverage, according to the requested history.
    fn first_origin(
        &mut self,
        settings: &Settings,
        scheme: &IdScheme,
        oldest: &Key,
        reading: &Reading,
    ) -> Key {
        if self.was_empty(reading) {
            return Key::lowest();
        }
        match settings.backfill {
            Backfill::None => oldest.clone(),
            // The first page may be all that was requested.
            Backfill::Count(count) => match count.checked_sub(reading.keys.len() as u64) {
                None | Some(0) => oldest.clone(),
                left => {
                    self.history.left = left;
                    Key::lowest()
                }
            },
            Backfill::Duration(ms) => {
                let since_ms = reading.retrieved_at_ms - ms;
                self.history.since_ms = Some(since_ms);
                let since = scheme.floor(since_ms).unwrap_or_else(Key::lowest);
                // The newest post of a quiet source may be older. Coverage then begins with it.
                since.min(oldest.clone())
            }
            Backfill::All => Key::lowest(),
        }
    }

    fn filled(&mut self, answer: &Answer<'_>, low: &Key, high: &Key) {
        let (request, reading) = (answer.request, answer.reading);
        let was_history = self.is_history(request, reading);
        if self.progressed(answer, None, low, high) && was_history {
            self.shorten_history(reading, high);
        }
    }

    /// True if a page shows posts of a range or below it, which is then read.
    fn progressed(
        &mut self,
        answer: &Answer<'_>,
        rung: Option<usize>,
        low: &Key,
        high: &Key,
    ) -> bool {
        let (request, reading) = (answer.request, answer.reading);
        let shows = match request.min_id {
            // A page that begins above the anchor does not reach it.
            Some(_) => {
                reading.oldest().is_some_and(|oldest| oldest <= low)
                    && reading.newest().is_some_and(|newest| newest > low)
            }
            None => self.nothing_below(request, reading).is_none(),
        };
        if shows && self.read_part_of(answer, low, high) {
            self.ledger.progressed(low, high);
            self.end_empty_ranges(low, high);
            self.end_stall(low, high);
            self.walk_on(answer, (low, high));
            return true;
        }
        let below = self.range_below(request, reading, (low, high));
        // The positions around a range in doubt are requested one by one.
        if !self.is_in_doubt(low, high) && self.walk_on(answer, (low, high)) {
            return false;
        }
        if let Some(crowded) = self.crowded(request, reading, (low, high)) {
            self.end_empty_ranges(low, high);
            self.leave_unread(&crowded.0, &crowded.1, &answer.plan.ladder);
            return false;
        }
        // A page other than the requested one does not show which posts are missing.
        let is_another = reading.passes_max_id(request) || reading.disorder.is_some();
        let may_be_empty = self.nothing_below(request, reading).is_some() && !is_another;
        let may_be_empty = may_be_empty && below.is_some();
        if may_be_empty {
            self.ledger.tried(low, high);
        } else {
            self.end_empty_ranges(low, high);
            self.made_no_progress(low, high, answer.received_at_ms);
        }
        let is_bounded = rung.is_some() || request.since_id.is_some() || request.min_id.is_some();
        let is_shown = |anchor: &&Key| reading.keys.contains(*anchor);
        if is_bounded {
            let anchor = request.anchor.as_ref();
            self.suspect_anchor(anchor.filter(|anchor| !is_shown(anchor)));
        }
        if let Some(range) = below.filter(|_| may_be_empty) {
            self.showed_nothing(answer, rung, range);
        }
        false
    }

    /// True if the timeline was empty before its first posts arrived. Empty answers prove that if
    /// they persist for some time, or if none of the posts is older.
    fn was_empty(&self, reading: &Reading) -> bool {
        let Some(since_ms) = self.history.empty_since_ms else {
            return self.history.seen_empty;
        };
        let scheme = self.scheme.or(reading.scheme);
        let oldest_ms = scheme.and_then(|scheme| scheme.time_ms(reading.oldest()?));
        reading.read_at_ms - since_ms >= EMPTY_FOR_MS
            || oldest_ms.is_none_or(|oldest_ms| oldest_ms >= since_ms)
    }

    /// Ends the history at the requested count or time, if the ledger's bounds cannot express it.
    fn shorten_history(&mut self, reading: &Reading, high: &Key) {
        let Some(oldest) = reading.oldest().cloned() else {
            return;
        };
        if let Some(left) = &mut self.history.left {
            let keys = reading.keys.iter().filter(|key| *key < high);
            *left = left.saturating_sub(keys.count() as u64);
            if *left == 0 {
                // Once only: later posts are not history.
                self.history.left = None;
                let scheme = self.scheme.or(reading.scheme);
                let origin = scheme.map(|scheme| scheme.end_of_time(&oldest));
                self.ledger.begin_later(&origin.unwrap_or(oldest));
            }
        }
    }

    /// Records that the newest post of a page of history was created at this time, in Unix ms. If
    /// IDs contain no time, this ends a history by duration.
    pub fn history_reached(&mut self, reading: &Reading, created_at_ms: i64) {
        let since_ms = self.history.since_ms;
        let is_over = since_ms.is_some_and(|since_ms| created_at_ms < since_ms);
        let is_untimed = self.scheme.is_some_and(|scheme| scheme.layout.is_none());
        let mut gaps = self.ledger.gaps().iter();
        if let Some(oldest) = reading.oldest()
            && is_over
            && is_untimed
            && gaps.any(|gap| is_history(gap) && gap.high <= *oldest)
        {
            self.ledger.begin_later(oldest);
        }
    }

    fn looked(&mut self, answer: &Answer<'_>, rung: usize, low: &Key, high: &Key) {
        if self.progressed(answer, Some(rung), low, high) && !self.waits_for(answer.plan, rung, low)
        {
            self.stats_of(rung).looks += 1;
        }
    }

    /// Applies a page of a range that still waits for a look, for any purpose of the page. A range
    /// without further looks stays unchanged, or every probe would cut it in three.
    pub(super) fn read_if_awaited(&mut self, answer: &Answer<'_>) {
        let Some(stretch) = self.stretch(answer.request, answer.reading) else {
            return;
        };
        let ladder = &answer.plan.ladder;
        let read_age_ms = self.ledger.read_age_ms(&stretch.low, &stretch.high);
        if read_age_ms.is_some_and(|age_ms| ladder.next(age_ms) < ladder.len()) {
            self.read(answer);
        }
    }

    /// True if the range that begins at `low` still waits for a rung.
    fn waits_for(&self, plan: &Plan, rung: usize, low: &Key) -> bool {
        let waits = |read: Provisional| plan.ladder.next(read.read_age_ms) == rung;
        let mut gaps = self.ledger.gaps().iter();
        gaps.any(|gap| gap.low == *low && gap.provisional().is_some_and(waits))
    }

    /// Applies the proof in a page to the ledger. Returns `false` if there is none.
    fn read(&mut self, answer: &Answer<'_>) -> bool {
        self.read_part_of(answer, &Key::lowest(), &Key::highest())
    }

    /// Applies the proof in a page to a part of the ledger. Returns `false` if there is none for
    /// that range.
    fn read_part_of(&mut self, answer: &Answer<'_>, low: &Key, high: &Key) -> bool {
        let stretch = self.stretch(answer.request, answer.reading);
        let (Some(scheme), Some(stretch)) = (self.scheme, stretch) else {
            return false;
        };
        self.ledger.read(&stretch, &scheme, &answer.plan.ladder);
        stretch.low < *high && stretch.high > *low
    }

    fn learn_rate(&mut self, reading: &Reading, new: u64) {
        self.new_per_poll += NEW_PER_POLL_WEIGHT * (new as f64 - self.new_per_poll);
        let Some(before_ms) = self.retrieved_at_ms else {
            return;
        };
        let elapsed_s = (reading.retrieved_at_ms - before_ms) as f64 / 1000.0;
        if elapsed_s > 0.0 {
            let rate_per_s = new as f64 / elapsed_s;
            let weight = |memory_s: f64| 1.0 - (-elapsed_s / memory_s).exp();
            self.rate_per_s += weight(RATE_MEMORY_S) * (rate_per_s - self.rate_per_s);
            // Until a day has passed: the average so far.
            self.rated_s = (self.rated_s + elapsed_s).min(DAY_S);
            self.daily_rate_per_s += weight(self.rated_s) * (rate_per_s - self.daily_rate_per_s);
        }
    }

    pub(super) fn apply_headers(&mut self, headers: &AnswerHeaders) {
        self.pace.server_failures = 0;
        self.clock_lead_ms = headers.sent_at_ms - read_at_ms(headers);
        self.is_lead_known = Derived(true);
        self.ahead.answered(headers.date_ms.is_some());
    }

    fn succeeded(&mut self, purpose: &RequestPurpose) {
        if *purpose == RequestPurpose::Poll {
            if self.errors.polls_fail() {
                // The server works again. Waits from its outage end.
                self.pace.work_blocked = Deadline::default();
            }
            self.pace.poll_failures = 0;
            self.errors.end(FailedRequest::Poll);
        } else {
            self.pace.work_failures = 0;
            self.errors.end(FailedRequest::Page);
        }
    }
}

const NEW_PER_POLL_WEIGHT: f64 = 0.1;
const RATE_MEMORY_S: f64 = 60.0;
const DAY_S: f64 = 86_400.0;

/// The wait that the server requests, in ms, with a limit. A server that names a date in another
/// year must not end the reading.
pub(super) fn retry_after_ms(failure: &Failure) -> i64 {
    let max_ms = match failure.kind {
        FailureKind::Capped => 31 * DAY_MS,
        FailureKind::Throttled => DAY_MS,
        _ => HOUR_MS,
    };
    failure.retry_after_ms.unwrap_or(0).min(max_ms)
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// True if a failure does not concern the request itself.
pub(super) fn is_about_the_server(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unreachable
            | FailureKind::TimedOut
            | FailureKind::Tls
            | FailureKind::PrivateAddress
            | FailureKind::Unauthorized
            | FailureKind::Throttled
            | FailureKind::Capped
            | FailureKind::ServerError
    )
}
