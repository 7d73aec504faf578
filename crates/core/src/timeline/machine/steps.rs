//! The next step.

use super::{FailedRequest, Machine, Step, is_history};
use crate::{
    answer::{Abilities, FailureKind},
    clock::Deadline,
    timeline::{
        clamp,
        gap_ledger::{Gap, GapKind, Provisional},
        plan::Plan,
        probes::Draw,
        request::{AnchorQuery, Bounds, Fetch, RequestPurpose},
        settings::Settings,
    },
    upstream_id::Key,
};

/// The context of the search for due work.
#[derive(Clone, Copy)]
struct Moment<'a> {
    plan: &'a Plan,
    abilities: Abilities,
    /// The present time by the local clock.
    now_ms: i64,
    server_now_ms: i64,
    settling: bool,
}

impl Step {
    pub(super) fn fetch(purpose: RequestPurpose, bounds: Bounds, abilities: Abilities) -> Self {
        Self::Fetch(Fetch {
            purpose,
            bounds,
            limit: abilities.page_limit,
        })
    }
}

impl Machine {
    /// The next step at `now_ms`, in Unix ms by the local clock.
    ///
    /// With `settling`, looks are taken as soon as their age allows, and do not wait for a full
    /// portion. Ranges that are read for the first time are read again after 3 s, if the second
    /// look comes later.
    pub fn next(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        now_ms: i64,
        settling: bool,
    ) -> Step {
        self.clamp_times(now_ms);
        self.decide(settings, abilities, now_ms);
        let plan = self.make_plan(settings, abilities, now_ms, false);
        let spacing_ms = settings.spacing_ms.max(self.quota.spacing_ms);
        let earliest_ms = self.earliest_ms(spacing_ms);
        if now_ms < earliest_ms {
            return Step::Wait {
                until_ms: earliest_ms,
            };
        }
        let last_poll_ms = self.pace.last_poll_ms;
        let poll_due_ms =
            last_poll_ms.map_or(now_ms, |last_ms| last_ms + self.every_ms(&plan, spacing_ms));
        let poll_is_due = poll_due_ms <= now_ms;
        // With any quota, every second request may be other than a poll. Otherwise gaps and second
        // looks would starve.
        if poll_is_due && !self.pace.last_was_poll {
            return self.poll(&plan, abilities, now_ms);
        }
        let work = if !self.pace.work_blocked.is_over(now_ms) {
            Step::Wait {
                until_ms: self.pace.work_blocked.until_ms(),
            }
        } else {
            let moment = Moment {
                plan: &plan,
                abilities,
                now_ms,
                server_now_ms: now_ms - self.clock_lead_ms,
                settling,
            };
            self.work(settings, moment, now_ms)
        };
        match work {
            Step::Wait { .. } if poll_is_due => self.poll(&plan, abilities, now_ms),
            Step::Wait { until_ms } => Step::Wait {
                until_ms: until_ms.min(poll_due_ms),
            },
            step => step,
        }
    }

    /// Returns the next request for an open gap that begins at `low` or above, even if other work
    /// is due. `None` if no request can fill one.
    pub(in crate::timeline) fn next_fill(
        &mut self,
        settings: &Settings,
        abilities: Abilities,
        now_ms: i64,
        low: &Key,
    ) -> Option<Step> {
        self.clamp_times(now_ms);
        let plan = self.make_plan(settings, abilities, now_ms, false);
        let moment = Moment {
            plan: &plan,
            abilities,
            now_ms,
            server_now_ms: now_ms - self.clock_lead_ms,
            settling: false,
        };
        let is_above = |gap: &&Gap| !is_history(gap) && gap.low >= *low;
        let Some(step) = self.fill(settings, moment, is_above) else {
            let gaps = self.ledger.gaps().iter().filter(is_above);
            let gaps = gaps.filter(|gap| is_to_fill(gap, settings) && !self.is_unconfirmed(gap));
            let until_ms = gaps
                .filter_map(|gap| self.stalled_until_ms(gap, now_ms))
                .min()?;
            return Some(Step::Wait { until_ms });
        };
        let until_ms = self
            .earliest_ms(settings.spacing_ms.max(self.quota.spacing_ms))
            .max(self.pace.work_blocked.until_ms());
        Some(match now_ms < until_ms {
            true => Step::Wait { until_ms },
            false => step,
        })
    }

    /// The earliest time of the next request, in Unix ms by the local clock.
    fn earliest_ms(&self, spacing_ms: i64) -> i64 {
        let last_ms = self.pace.last_request_ms;
        last_ms
            .map_or(0, |last_ms| last_ms + spacing_ms)
            .max(self.pace.blocked.until_ms())
    }

    /// Records that the step's request is sent at `now_ms`, in Unix ms by the local clock.
    pub fn sent(&mut self, step: &Step, now_ms: i64) {
        let (is_poll, is_rung) = match step {
            Step::Fetch(fetch) => match fetch.purpose {
                RequestPurpose::Poll => (true, false),
                RequestPurpose::Look { rung: 1.., .. }
                | RequestPurpose::Probe { .. }
                | RequestPurpose::Recheck { .. } => (false, true),
                _ => (false, false),
            },
            Step::LookUp(_) => (false, true),
            Step::Wait { .. } => return,
        };
        self.counters.requests += 1;
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

    /// Makes the next poll due now, because posts may have been missed while no stream was
    /// connected.
    pub fn poll_soon(&mut self) {
        self.pace.last_poll_ms = None;
    }

    /// The same, despite earlier failures, unless the server requested a wait. A person who starts
    /// or stops reading by hand wants the present state.
    pub fn retry_soon(&mut self) {
        self.poll_soon();
        let error = self.errors.ongoing().map(|error| error.kind);
        if !matches!(error, Some(FailureKind::Throttled | FailureKind::Capped)) {
            self.pace.blocked = Deadline::default();
            self.pace.work_blocked = Deadline::default();
        }
    }

    fn poll(&self, plan: &Plan, abilities: Abilities, now_ms: i64) -> Step {
        // After an unusable answer, the same request is not repeated.
        let is_plain = self.pace.poll_failures % 2 == 1
            || !self.honoured.since_id.is_usable(now_ms)
            || self.honoured.disorder.is_some();
        let since_id = self.since_id(plan).filter(|_| !is_plain);
        let bounds = match (since_id, self.scheme) {
            (Some(at_most), Some(scheme)) if scheme.names_posts() => {
                Bounds::HeadFrom(AnchorQuery::Newest { at_most, skip: 0 })
            }
            (since_id, _) => Bounds::Head {
                since_id,
                ceiling: self.ceiling(now_ms).filter(|_| !is_plain),
            },
        };
        Step::fetch(RequestPurpose::Poll, bounds, abilities)
    }

    /// The time between two polls, in ms. If only the newest page is available, it is shorter than
    /// the time that fills a page.
    fn every_ms(&self, plan: &Plan, spacing_ms: i64) -> i64 {
        if !self.honoured.is_link_only() || self.rate_per_s <= 0.0 {
            return plan.every_ms;
        }
        let page_ms = self.honoured.longest_page as f64 / self.rate_per_s * 1_000.0;
        plan.every_ms.min((page_ms / 3.0) as i64).max(spacing_ms)
    }

    /// The lower bound of a poll: the clamp. On a busy source it is low enough to include the
    /// newest known post, which shows that the page is contiguous with the stored posts. On a quiet
    /// one that would fetch the post at every poll. There, a page with new posts opens a gap that
    /// one more request closes.
    fn since_id(&self, plan: &Plan) -> Option<Key> {
        let scheme = self.scheme?;
        let latest = self.ledger.frontier()?;
        let overlap_ms = plan.overlap_ms.max(self.precision_ms());
        let clamped = self
            .retrieved_at_ms
            .and_then(|at_ms| clamp::since_id(&scheme, latest, at_ms, overlap_ms))
            .unwrap_or_else(|| latest.clone());
        if self.new_per_poll < BUSY_POSTS_PER_POLL {
            return Some(clamped);
        }
        match scheme.predecessor(latest) {
            Some(under) => Some(clamped.min(under)),
            None => Some(clamped),
        }
    }

    /// The upper bound of polls while some posts are dated ahead. It is the server's time by its
    /// `Date` alone, plus the lead of its newest IDs.
    fn ceiling(&self, now_ms: i64) -> Option<Key> {
        if !self.ahead.leaves_out() {
            return None;
        }
        self.ledger.frontier()?;
        let server_now_ms = now_ms - self.clock_lead_ms;
        self.scheme
            .filter(|scheme| !scheme.names_posts())?
            .floor(server_now_ms + self.tolerance_ms())
    }

    /// Reads posts dated ahead separately and rarely.
    fn due_ahead(&self, abilities: Abilities, now_ms: i64) -> Option<Step> {
        let ceiling = self.ceiling(now_ms)?;
        let is_due = now_ms - self.ahead.read_at_ms >= AHEAD_EVERY_MS;
        let bounds = Bounds::Head {
            since_id: Some(ceiling),
            ceiling: None,
        };
        is_due.then(|| Step::fetch(RequestPurpose::Ahead, bounds, abilities))
    }

    fn work(&mut self, settings: &Settings, at: Moment<'_>, now_ms: i64) -> Step {
        self.prune_empty_ranges();
        self.prune_walks();
        if !self.is_lead_known.0 {
            return self.untimed_work(settings, at);
        }
        self.leave_unreachable(settings, at);
        // An unconfirmed empty range waits for look-ups.
        if !self.empty_ranges.is_empty()
            && let Some(step) = self.due_look_up(now_ms)
        {
            return step;
        }
        if let Some(step) = self.due_look(at, 0) {
            return step;
        }
        if self.within_share(settings) {
            let look_up = self.due_look_up(now_ms);
            let step = look_up.or_else(|| self.due_recheck(at.abilities, now_ms));
            if let Some(step) = step {
                return step;
            }
        }
        let unconfirmed_until_ms = match self.due_empty_range(at.abilities, now_ms) {
            Ok(step) => return step,
            Err(retry_ms) => retry_ms.unwrap_or(i64::MAX),
        };
        if let Some(step) = self.due_fill(settings, at) {
            return step;
        }
        if let Some(step) = self.due_ahead(at.abilities, now_ms) {
            return step;
        }
        // The probes at the last age maintain the proof, so they come before any rung.
        if let Some(step) = self.due_probe(at, true) {
            return step;
        }
        let has_share = self.within_share(settings);
        if has_share {
            let looks = (1..at.plan.ladder.len()).find_map(|rung| self.due_look(at, rung));
            let step = looks
                .or_else(|| self.due_probe(at, false))
                .or_else(|| self.late_look(at));
            if let Some(step) = step {
                return step;
            }
        }
        if has_share && self.empty_ranges.is_empty() && !self.has_failed_ranges() {
            // No failed range is left.
            self.errors.end(FailedRequest::Page);
        }
        self.pass_over_unread(at, !has_share);
        // Work that is due but not taken waits for its share of the quota. The next poll is early
        // enough for another check.
        let gaps = self.ledger.gaps().iter();
        let due_ms = gaps
            .filter(|gap| !self.is_unconfirmed(gap))
            .filter_map(|gap| self.due_at_ms(gap, at.plan, at.settling))
            .filter(|due_ms| *due_ms > at.server_now_ms)
            .min();
        let due_ms = due_ms.map_or(i64::MAX, |due_ms| due_ms.saturating_add(self.clock_lead_ms));
        let others = [self.next_look_up_ms(now_ms), self.next_recheck_ms(now_ms)];
        let others_ms = others.into_iter().flatten().min().unwrap_or(i64::MAX);
        Step::Wait {
            until_ms: due_ms.min(unconfirmed_until_ms).min(others_ms),
        }
    }

    /// Work that does not depend on ages, until an answer has shown the server's time.
    fn untimed_work(&self, settings: &Settings, at: Moment<'_>) -> Step {
        let step = self.due_look_up(at.now_ms);
        let step = step.or_else(|| self.due_fill(settings, at));
        step.unwrap_or(Step::Wait { until_ms: i64::MAX })
    }

    /// A range that is due for its rung in time.
    fn due_look(&self, at: Moment<'_>, rung: usize) -> Option<Step> {
        let age_ms = at.plan.ladder.age_ms(rung)?;
        // Ranges further back were delayed, or belong to a changed plan. They do not come before
        // the work that is due now.
        let period_ms = at.plan.ladder.period_ms(rung);
        let late_ms = period_ms.saturating_mul(IN_TIME_PERIODS) + IN_TIME_MS;
        let in_time_ms = at.server_now_ms - age_ms - late_ms;
        let is_in_time = |gap: &&Gap| {
            gap.provisional()
                .is_some_and(|it| it.until_ms >= in_time_ms)
        };
        let mut gaps = self.ledger.gaps().iter().filter(is_in_time);
        gaps.find_map(|gap| self.look(at, gap, rung))
    }

    /// A range that was due earlier, the youngest first.
    fn late_look(&self, at: Moment<'_>) -> Option<Step> {
        let mut gaps = self.ledger.gaps().iter().rev();
        gaps.find_map(|gap| {
            let read_age_ms = gap.provisional()?.read_age_ms;
            self.look(at, gap, at.plan.ladder.next(read_age_ms))
        })
    }

    fn look(&self, at: Moment<'_>, gap: &Gap, rung: usize) -> Option<Step> {
        let read = gap.provisional()?;
        let is_its_rung = at.plan.ladder.next(read.read_age_ms) == rung;
        if !is_its_rung
            || self.is_unconfirmed(gap)
            || self.is_stalled(gap, at.now_ms)
            || self.due_at_ms(gap, at.plan, at.settling)? > at.server_now_ms
        {
            return None;
        }
        let old_enough_ms = at.server_now_ms - look_age_ms(read, at.plan, at.settling)?;
        let high = match self.scheme?.floor(old_enough_ms) {
            Some(edge) => edge.min(gap.high.clone()),
            None => gap.high.clone(),
        };
        let low = gap.low.clone();
        if low >= high {
            return None;
        }
        // A walk that began in the middle of a second continues there.
        let high = self.walk_in(&low, &high).cloned().unwrap_or(high);
        let bounds = self.bounds_of(gap, &high, at.abilities, at.now_ms)?;
        let purpose = RequestPurpose::Look { rung, low, high };
        Some(Step::fetch(purpose, bounds, at.abilities))
    }

    /// The time by which the oldest due look is late at `now_ms`, in Unix ms by the local clock,
    /// beyond the delay by quotas and other work. `None` if no look is late.
    pub fn overdue_ms(&self, plan: &Plan, now_ms: i64) -> Option<i64> {
        let server_now_ms = now_ms - self.clock_lead_ms;
        let late_ms = |gap: &Gap| {
            let read = gap.provisional()?;
            let rung = plan.ladder.next(read.read_age_ms);
            plan.ladder.age_ms(rung)?;
            let allowed_ms = plan.ladder.period_ms(rung) + IN_TIME_MS;
            Some(server_now_ms - self.due_at_ms(gap, plan, false)? - allowed_ms)
        };
        let gaps = self.ledger.gaps().iter();
        gaps.filter_map(late_ms).filter(|ms| *ms > 0).max()
    }

    /// The due time of a provisional range for its rung, in Unix ms by the server's clock. It is
    /// due when a full portion is above its oldest ID. If IDs contain no time, it cannot be read in
    /// parts, and is due only when all of it is old enough. An earlier look would not change it.
    fn due_at_ms(&self, gap: &Gap, plan: &Plan, settling: bool) -> Option<i64> {
        let read = gap.provisional()?;
        let Some(age_ms) = look_age_ms(read, plan, settling) else {
            // No rung reads it any more. It becomes old enough.
            return Some(read.until_ms + plan.ladder.complete_ms());
        };
        let whole_ms = read.until_ms - read.from_ms;
        let portion_ms = match settling {
            false => plan.ladder.period_ms(plan.ladder.next(read.read_age_ms)),
            // Polls continue and add to it.
            true if is_early(read, plan) => whole_ms.min(SETTLING_PORTION_MS),
            true => whole_ms,
        };
        let due_ms = read.from_ms + age_ms + portion_ms;
        let is_timed = self.scheme.is_some_and(|scheme| scheme.layout.is_some());
        Some(match is_timed {
            true => due_ms,
            false => due_ms.max(read.until_ms + age_ms + READ_EARLY_MS),
        })
    }

    fn due_probe(&mut self, at: Moment<'_>, last: bool) -> Option<Step> {
        let scheme = self.scheme?;
        let last_ms = at.plan.ladder.complete_ms();
        let Draw {
            age_ms,
            from_ms,
            until_ms,
            share,
        } = self.probes.next(last_ms, last, at.server_now_ms)?;
        let (low, high) = (scheme.floor(from_ms)?, scheme.floor(until_ms)?);
        let bounds = Bounds::Under {
            anchor: AnchorQuery::Drawn {
                low,
                high: high.clone(),
                per_million: (share * 1e6) as u32,
            },
            else_max_id: high,
        };
        let purpose = RequestPurpose::Probe { age_ms, until_ms };
        Some(Step::fetch(purpose, bounds, at.abilities))
    }

    fn due_fill(&self, settings: &Settings, at: Moment<'_>) -> Option<Step> {
        self.fill(settings, at, |_| true)
    }

    /// A request for one of the gaps that must be filled.
    fn fill(
        &self,
        settings: &Settings,
        at: Moment<'_>,
        is_wanted: impl Fn(&&Gap) -> bool,
    ) -> Option<Step> {
        // Gaps come before history, because new posts are more urgent.
        let gaps = self
            .ledger
            .gaps()
            .iter()
            .filter(|gap| is_to_fill(gap, settings))
            .filter(is_wanted);
        let gaps = gaps.filter(|gap| !self.is_unconfirmed(gap) && !self.is_stalled(gap, at.now_ms));
        let gap = gaps.min_by_key(|gap| is_history(gap))?;
        let bounds = self.bounds_of(gap, &gap.high, at.abilities, at.now_ms)?;
        let (low, high) = (gap.low.clone(), gap.high.clone());
        let purpose = RequestPurpose::Fill { low, high };
        Some(Step::fetch(purpose, bounds, at.abilities))
    }

    /// Lists ranges as unread that no request can reach, or that had too many attempts without
    /// progress.
    fn leave_unreachable(&mut self, settings: &Settings, at: Moment<'_>) {
        self.give_up_stalled(&at.plan.ladder, at.now_ms);
        if self.can_ask_down(at.abilities, at.now_ms) {
            return;
        }
        let is_overdue = |gap: &Gap| {
            let read_age_ms = gap.provisional().map_or(0, |read| read.read_age_ms);
            let period_ms = at.plan.ladder.period_ms(at.plan.ladder.next(read_age_ms));
            let due_ms = self.due_at_ms(gap, at.plan, at.settling);
            due_ms.is_some_and(|due_ms| due_ms + period_ms < at.server_now_ms)
        };
        let gaps = self.ledger.gaps().iter();
        let gaps = gaps.filter(|gap| is_to_fill(gap, settings) || is_overdue(gap));
        let is_reachable = |gap: &Gap| {
            let bounds = self.bounds_of(gap, &gap.high, at.abilities, at.now_ms);
            bounds.is_some()
        };
        let gaps = gaps.filter(|gap| !is_reachable(gap));
        let unread: Vec<(Key, Key)> = gaps
            .map(|gap| (gap.low.clone(), gap.high.clone()))
            .collect();
        for (low, high) in unread {
            self.leave_unread(&low, &high, &at.plan.ladder);
        }
    }

    /// True if a rung above the second look may use a request. Always true if the quota allows
    /// several requests per poll. Otherwise limited to its share.
    fn within_share(&self, settings: &Settings) -> bool {
        let spacing_ms = self.quota.spacing_ms.max(settings.spacing_ms);
        if spacing_ms * ROOMY_REQUESTS_PER_POLL <= settings.every_ms {
            return true;
        }
        self.pace.recent_rungs * 100 <= self.pace.recent.max(1) * settings.rung_share_percent
    }

    /// Marks ranges as old enough that no look will read. The plan may be proven, or the quota's
    /// share may have delayed them a whole period beyond their due time.
    fn pass_over_unread(&mut self, at: Moment<'_>, short_of_quota: bool) {
        let ladder = &at.plan.ladder;
        let Some(scheme) = self.scheme else {
            return;
        };
        let mut before_ms = at.server_now_ms - ladder.complete_ms();
        if !ladder.leaves_out_the_last() {
            if !short_of_quota {
                return;
            }
            before_ms -= ladder.period_ms(ladder.len() - 1);
        }
        let slack_ms = if short_of_quota || at.settling {
            0
        } else {
            ladder.complete_ms() / PASSED_OVER_PORTIONS
        };
        let passed: Vec<(Key, Key)> = self
            .ledger
            .gaps()
            .iter()
            .filter_map(|gap| {
                let Provisional {
                    read_age_ms,
                    from_ms,
                    until_ms,
                    ..
                } = gap.provisional()?;
                // A look that the plan still requires is taken, even if it is late.
                let waits = ladder.next(read_age_ms) < ladder.len() && !short_of_quota;
                let is_ready = until_ms <= before_ms || from_ms < before_ms - slack_ms;
                if waits || !is_ready {
                    return None;
                }
                let high = match scheme.floor(before_ms) {
                    Some(edge) => edge.min(gap.high.clone()),
                    None if until_ms <= before_ms => gap.high.clone(),
                    None => return None,
                };
                (gap.low < high).then(|| (gap.low.clone(), high))
            })
            .collect();
        for (low, high) in passed {
            self.ledger.pass_over(&low, &high, &scheme, ladder);
            if short_of_quota {
                self.stats_of(ladder.len().saturating_sub(1)).skipped_quota += 1;
            }
        }
    }
}

fn is_to_fill(gap: &Gap, settings: &Settings) -> bool {
    match gap.kind {
        GapKind::Open { fill_requested, .. } => fill_requested || settings.fill_gaps,
        _ => false,
    }
}

/// The age at which a range is read again; `None` if it is not read any more.
fn look_age_ms(read: Provisional, plan: &Plan, settling: bool) -> Option<i64> {
    let age_ms = plan.ladder.age_ms(plan.ladder.next(read.read_age_ms))?;
    Some(match settling && is_early(read, plan) {
        true => age_ms.min(SETTLING_LOOK_MS),
        false => age_ms,
    })
}

/// True if settling looks at a range before the second look.
fn is_early(read: Provisional, plan: &Plan) -> bool {
    plan.ladder.next(read.read_age_ms) == 0 && read.read_age_ms < SETTLING_LOOK_MS
}

/// The age at which settling reads ranges again that wait for a later second look, in ms. The end
/// of a mirror does not wait for that look.
pub(super) const SETTLING_LOOK_MS: i64 = 3_000;
/// The time span that such a look covers in a timeline with new posts, in ms.
const SETTLING_PORTION_MS: i64 = 1_000;
/// From this number of new posts per poll on, a poll also reads its anchor.
const BUSY_POSTS_PER_POLL: f64 = 0.5;
/// With this number of requests per poll, the quota has room for every rung.
const ROOMY_REQUESTS_PER_POLL: i64 = 4;
/// The tolerance for an answer that counts as read before its request, in ms, because `Date` is in
/// whole seconds.
const READ_EARLY_MS: i64 = 2_000;
/// A look this late was delayed.
const IN_TIME_PERIODS: i64 = 4;
const IN_TIME_MS: i64 = 60_000;
/// Ranges that become old enough unread are passed over in portions of this part of the last rung's
/// age.
const PASSED_OVER_PORTIONS: i64 = 24;
/// The interval between reads of posts dated ahead.
const AHEAD_EVERY_MS: i64 = 10 * 60_000;
