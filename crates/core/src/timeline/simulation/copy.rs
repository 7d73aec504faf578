//! The machine over a workload.

use super::{
    outcome::{Delays, PlanChange, PollerOutcome},
    server::{Bounds, PAGE, ROUND_TRIP_MS, Server},
    workload::Workload,
    world::{World, time_ms},
};
use crate::{
    answer::Abilities,
    quota::{Grant, QuotaLedger, QuotaPurpose},
    rng::Rng,
    timeline::{Anchor, AnchorQuery, IdScheme, Machine, Reading, Request, Settings, Step, Stored},
    upstream_id::{IdOrder, Key, UpstreamId},
};

/// How long a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// At most until here if the bound is not proven, ms.
    pub unproven_ms: i64,
    /// For so long after it was proven, ms.
    pub proven_ms: i64,
}

/// Lets the machine copy a workload, and on until all that was published has come of age.
pub fn run(workload: &Workload, settings: &Settings, length: Length, seed: u64) -> PollerOutcome {
    let mut copy = Copy::new(workload, settings, seed);
    let unproven_ms = START_MS + length.unproven_ms;
    while copy.now_ms < unproven_ms && copy.proven_ms.is_none() {
        copy.step(unproven_ms);
    }
    let end_ms = match copy.proven_ms {
        Some(proven_ms) => proven_ms + length.proven_ms,
        None => unproven_ms,
    };
    while copy.now_ms < end_ms {
        copy.step(end_ms);
    }
    copy.finish()
}

struct Copy<'a> {
    settings: &'a Settings,
    server: Server,
    machine: Machine,
    quota: QuotaLedger,
    now_ms: i64,
    first_ms: Option<i64>,
    proven_ms: Option<i64>,
    rng: Rng,
    /// Fetched and stored, before the bound was proven and from then on.
    fetched: [u64; 2],
    stored: [u64; 2],
    delays: Vec<i64>,
    late_delays: Vec<i64>,
    outcome: PollerOutcome,
}

impl<'a> Copy<'a> {
    fn new(workload: &Workload, settings: &'a Settings, seed: u64) -> Self {
        let world = World::new(workload.clone(), seed, START_MS);
        Self {
            settings,
            server: Server::new(world, workload.throttle),
            machine: Machine::default(),
            quota: QuotaLedger::default(),
            now_ms: START_MS + LEAD_MS,
            first_ms: None,
            proven_ms: None,
            rng: Rng::new(!seed),
            fetched: [0; 2],
            stored: [0; 2],
            delays: Vec::new(),
            late_delays: Vec::new(),
            outcome: PollerOutcome::default(),
        }
    }

    fn step(&mut self, until_ms: i64) {
        self.machine.set_quota(self.quota.view(self.now_ms));
        let mut step = self
            .machine
            .next(self.settings, ABILITIES, self.now_ms, false);
        if !matches!(step, Step::Wait { .. })
            && let Grant::Until(until_ms) = self.take_request()
        {
            step = Step::Wait { until_ms };
        }
        self.machine.sent(&step, self.now_ms);
        match step {
            Step::Wait { until_ms: wait_ms } => {
                self.now_ms = wait_ms.min(until_ms).max(self.now_ms + 1);
            }
            Step::LookUp(id) => {
                // Nothing is deleted here.
                if let Ok(headers) = self.server.answer(self.now_ms, false) {
                    self.quota.answered(QuotaPurpose::Poll, None, self.now_ms);
                    self.machine.looked_up(&id, false, &headers);
                }
                self.now_ms += ROUND_TRIP_MS;
            }
            Step::Fetch(fetch) => {
                let anchor = fetch.anchor_query().and_then(|query| self.anchor(query));
                let request = fetch.request(self.machine.scheme(), anchor.as_ref());
                self.fetch(&request);
            }
        }
    }

    fn take_request(&mut self) -> Grant {
        let posts = u32::from(ABILITIES.page_limit);
        let purpose = QuotaPurpose::Poll;
        self.quota.take(1, posts, purpose, 0.0, self.now_ms)
    }

    fn fetch(&mut self, request: &Request) {
        self.outcome.requests += 1;
        let sent_at_ms = self.now_ms;
        let is_paged = request.page.since_id.is_some()
            || request.page.max_id.is_some()
            || request.page.min_id.is_some();
        let headers = match self.server.answer(sent_at_ms, is_paged) {
            Ok(headers) => headers,
            Err(failure) => {
                self.now_ms += ROUND_TRIP_MS;
                let random = (self.rng.share() * 1e9) as u64;
                let throttle = failure.throttle.as_ref();
                self.quota
                    .refused(QuotaPurpose::Poll, throttle, None, random, self.now_ms);
                let purpose = Some(&request.purpose);
                return self
                    .machine
                    .failed(self.settings, purpose, &failure, self.now_ms, random);
            }
        };
        let page = self.server.page(Bounds::of(request), sent_at_ms);
        self.now_ms = headers.received_at_ms;
        let throttle = headers.throttle.as_ref();
        self.quota
            .answered(QuotaPurpose::Poll, throttle, self.now_ms);
        let keys = page
            .iter()
            .map(|&index| key_of(self.server.world.get(index).id));
        let reading = Reading::of_keys(keys.collect(), &[], Some(SCHEME), &headers);
        let after = usize::from(self.proven_ms.is_some());
        self.fetched[after] += page.len() as u64;
        let first_ms = *self.first_ms.get_or_insert(sent_at_ms);
        let mut new = Vec::with_capacity(page.len());
        for &index in &page {
            let post = self.server.world.get_mut(index);
            let is_new = post.stored_at_ms.is_none();
            new.push(is_new);
            if is_new {
                post.stored_at_ms = Some(self.now_ms);
                self.stored[after] += 1;
                let counts = self.proven_ms.unwrap_or(first_ms);
                if time_ms(post.id) >= counts {
                    let delay_ms = self.now_ms - post.visible_at_ms;
                    self.delays.push(delay_ms);
                    if post.visible_at_ms - time_ms(post.id) > 1_000 {
                        self.late_delays.push(delay_ms);
                    }
                }
            }
        }
        let stored = Stored {
            absent: Vec::new(),
            live_below: self
                .machine
                .nothing_below(request, &reading)
                .and_then(|high| self.anchor(&AnchorQuery::below(high))?.below(high)),
            new,
            edited: 0,
        };
        self.machine.page(
            self.settings,
            ABILITIES,
            request,
            &reading,
            &headers,
            &stored,
        );
        self.record_plan();
        self.server.world.drop_older(self.now_ms - KEPT_MS);
    }

    fn record_plan(&mut self) {
        let Some(choice) = self.machine.choice() else {
            return;
        };
        let (overlap_ms, is_proven) = (choice.overlap_ms, choice.is_proven);
        let is_trial = choice.trial_ms.is_some();
        let looks_ms: Vec<i64> = choice.looks.iter().map(|look| look.age_ms).collect();
        let is_same = self
            .outcome
            .plans
            .last()
            .is_some_and(|last| last.looks_ms == looks_ms && last.is_proven == is_proven);
        if is_same {
            return;
        }
        let at_ms = self.now_ms - START_MS;
        self.outcome.plans.push(PlanChange {
            at_ms,
            overlap_ms,
            looks_ms,
            is_proven,
        });
        if is_proven && !is_trial && self.proven_ms.is_none() {
            self.proven_ms = Some(self.now_ms);
            self.server.world.proven_ms = Some(at_ms);
            self.delays.clear();
            self.late_delays.clear();
        }
    }

    /// Ends the posts, and runs until those that exist have come of age.
    fn finish(mut self) -> PollerOutcome {
        let ended_ms = self.now_ms;
        self.server.world.end(ended_ms);
        // The settling afterwards is not part of the cost of the plan.
        let (fetched, stored) = (self.fetched, self.stored);
        let ages = self.settings.rungs.iter().map(|rung| rung.age_ms);
        let last_ms = ages.max().unwrap_or(0);
        let end_ms = ended_ms + last_ms + last_ms / 3;
        while self.now_ms < end_ms {
            self.step(end_ms);
        }
        let first_ms = self.first_ms.unwrap_or(ended_ms);
        let world = &self.server.world;
        let unread = world.posts().filter(|post| post.stored_at_ms.is_none());
        let missed = world.missed.iter().chain(unread).filter(|post| {
            let came_in_time = post.visible_at_ms - time_ms(post.id) <= last_ms;
            time_ms(post.id) >= first_ms && came_in_time
        });
        let missed: Vec<Key> = missed.map(|post| key_of(post.id)).collect();
        let gaps = self.machine.ledger().gaps();
        let is_listed = |key: &&Key| gaps.iter().any(|gap| gap.low <= **key && **key < gap.high);
        let mut outcome = self.outcome;
        outcome.listed = missed.iter().filter(is_listed).count() as u64;
        outcome.missed = missed.len() as u64;
        outcome.posts = world.gone + world.len() as u64;
        outcome.proven_after_ms = self.proven_ms.map(|ms| ms - START_MS);
        let per_post = |index: usize| fetched[index] as f64 / stored[index].max(1) as f64;
        outcome.fetches_before = per_post(0);
        outcome.fetches_after = per_post(usize::from(self.proven_ms.is_some()));
        outcome.delays = Delays::of(self.delays);
        outcome.late_delays = Delays::of(self.late_delays);
        outcome
    }

    fn anchor(&self, query: &AnchorQuery) -> Option<Anchor> {
        let world = &self.server.world;
        let number = |key: &Key| -> u64 {
            let id = SCHEME.id(key);
            id.as_str().parse().unwrap_or(0)
        };
        let is_stored = |index: &usize| world.get(*index).stored_at_ms.is_some();
        let mut stored: Box<dyn Iterator<Item = usize>> = match query {
            AnchorQuery::Newest { at_most, skip } => {
                let under = world.first_above(number(at_most));
                let stored = (0..under).rev().filter(is_stored);
                Box::new(stored.skip(*skip as usize))
            }
            AnchorQuery::Oldest { at_least, skip } => {
                let from = world.first_at(number(at_least));
                let stored = (from..world.len()).filter(is_stored);
                Box::new(stored.skip(*skip as usize))
            }
            AnchorQuery::Drawn {
                low,
                high,
                per_million,
            } => {
                let (from, to) = (world.first_at(number(low)), world.first_at(number(high)));
                let part = (to - from) as u64 * u64::from(*per_million) / 1_000_000;
                Box::new((from + part as usize..to).filter(is_stored))
            }
        };
        let key = |index: usize| key_of(world.get(index).id);
        Some(Anchor {
            key: key(stored.next()?),
            before: stored.next().map(key),
        })
    }
}

fn key_of(id: u64) -> Key {
    let id = UpstreamId::new(id.to_string());
    SCHEME.key(&id).unwrap_or_else(|_| Key::lowest())
}

const SCHEME: IdScheme = IdScheme {
    order: IdOrder::Numeric,
    layout: Some(driftline_id::Layout::MASTODON),
};
const ABILITIES: Abilities = Abilities {
    page_limit: PAGE as u16,
    min_id: true,
};
/// October 2025.
pub(super) const START_MS: i64 = 1_760_000_000_000;
/// Posts are there before the first poll.
const LEAD_MS: i64 = 60_000;
/// Nothing is read that is older than this: a gap that a throttle keeps open may be days old.
const KEPT_MS: i64 = 240 * 3_600_000;
