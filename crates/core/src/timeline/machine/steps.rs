//! What to do next.

use super::{Machine, Step, is_history};
use crate::{
    answer::Abilities,
    timeline::{
        clamp,
        ledger::{Gap, GapKind},
        plan::Plan,
        request::{AnchorQuery, Bounds, Fetch, Purpose},
        settings::Settings,
    },
    upstream_id::Key,
};

impl Machine {
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

    /// Lets the next poll be due now: something may have been missed, because
    /// a stream was not connected.
    pub fn poll_soon(&mut self) {
        self.pace.last_poll_ms = None;
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
        // Whether a range lies beyond the upstream's depth hangs on a look-up.
        if self.history.bottom_seen > 0
            && let Some(suspect) = self.suspects.front()
        {
            return Step::LookUp(suspect.id.clone());
        }
        if let Some(step) = self.due_look(plan, abilities, server_now_ms, settling, 0) {
            return step;
        }
        if let Some(suspect) = self.suspects.front()
            && self.within_share(settings, now_ms)
        {
            return Step::LookUp(suspect.id.clone());
        }
        if let Some(step) = self.due_fill(settings, abilities) {
            return step;
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

    /// Whether a rung above the second look may take a request: always while
    /// the throttles leave several requests a poll, else within its share.
    fn within_share(&self, settings: &Settings, now_ms: i64) -> bool {
        let spacing_ms = self.throttles.spacing_ms(now_ms).max(settings.spacing_ms);
        if spacing_ms * ROOMY_REQUESTS_PER_POLL <= settings.every_ms {
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
/// With so many requests a poll there is room for every rung.
const ROOMY_REQUESTS_PER_POLL: i64 = 4;
