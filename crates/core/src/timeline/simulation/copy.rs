//! The machine over a workload.

use super::{
    outcome::{PlanChange, PollerOutcome, Tally},
    server::{PAGE, ROUND_TRIP_MS, headers},
    workload::Workload,
    world::{START_MS, World, time_ms},
};
use crate::{
    answer::{Abilities, Failure},
    quota::{Grant, QuotaLedger, QuotaPurpose},
    rng::Rng,
    timeline::{
        Anchor, AnchorQuery, IdScheme, LookUpOutcome, Machine, Reading, Request, Settings, Step,
        Stored,
    },
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

impl Length {
    /// The most virtual time that [`run`] takes, ms.
    pub fn max_ms(&self, settings: &Settings) -> i64 {
        self.unproven_ms + settling_ms(settings)
    }
}

/// The time from a run's end until all that was published has come of age, ms.
fn settling_ms(settings: &Settings) -> i64 {
    let ages = settings.rungs.iter().map(|rung| rung.age_ms);
    let last_ms = ages.max().unwrap_or(0);
    last_ms + last_ms / 3
}

/// Lets the machine copy a workload, and on until all that was published has come of age. `passed` is
/// called with the virtual time that has passed, ms.
pub fn run(
    workload: &Workload,
    settings: &Settings,
    length: Length,
    seed: u64,
    passed: &mut dyn FnMut(i64),
) -> PollerOutcome {
    let mut copy = Copy::new(workload, settings, seed, passed);
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
    world: World,
    machine: Machine,
    quota: QuotaLedger,
    now_ms: i64,
    first_ms: Option<i64>,
    proven_ms: Option<i64>,
    rng: Rng,
    /// Before the bound was proven, and from then on.
    tallies: [Tally; 2],
    outcome: PollerOutcome,
    passed: &'a mut dyn FnMut(i64),
}

impl<'a> Copy<'a> {
    fn new(
        workload: &Workload,
        settings: &'a Settings,
        seed: u64,
        passed: &'a mut dyn FnMut(i64),
    ) -> Self {
        let world = World::new(workload.clone(), seed);
        Self {
            settings,
            machine: Machine::default(),
            quota: QuotaLedger::default(),
            now_ms: world.first_poll_ms(),
            world,
            first_ms: None,
            proven_ms: None,
            rng: Rng::new(!seed),
            tallies: Default::default(),
            outcome: PollerOutcome::default(),
            passed,
        }
    }

    fn step(&mut self, until_ms: i64) {
        (self.passed)(self.now_ms - START_MS);
        self.machine.set_quota(self.quota.view(self.now_ms));
        let mut step = self
            .machine
            .next(self.settings, ABILITIES, self.now_ms, false);
        if !matches!(step, Step::Wait { .. })
            && let Grant::Until(until_ms) =
                self.quota
                    .take(1, PAGE as u32, QuotaPurpose::Poll, 0.0, self.now_ms)
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
                self.quota.answered(QuotaPurpose::Poll, None, self.now_ms);
                let (machine, headers) = (&mut self.machine, headers(self.now_ms));
                machine.looked_up(&id, LookUpOutcome::Found, &headers);
                self.now_ms += ROUND_TRIP_MS;
            }
            Step::Fetch(fetch) => {
                let anchor = fetch.anchor_query().and_then(|query| self.anchor(query));
                let request = fetch.request(self.machine.scheme(), anchor.as_ref());
                self.fetch(&request);
            }
        }
    }

    fn fetch(&mut self, request: &Request) {
        self.outcome.requests += 1;
        let sent_at_ms = self.now_ms;
        self.now_ms += ROUND_TRIP_MS;
        let (page, headers) = match self.world.page(&request.page, sent_at_ms) {
            Ok(answer) => answer,
            Err(failure) => return self.failed(request, &failure),
        };
        let throttle = headers.throttle.as_ref();
        self.quota
            .answered(QuotaPurpose::Poll, throttle, self.now_ms);
        let world = &mut self.world;
        let keys = page.iter().map(|&index| key_of(world.posts[index].id));
        let reading = Reading::of_keys(keys.collect(), &[], Some(SCHEME), &headers);
        let first_ms = *self.first_ms.get_or_insert(sent_at_ms);
        let tally = &mut self.tallies[usize::from(self.proven_ms.is_some())];
        let from_ms = self.proven_ms.unwrap_or(first_ms);
        let new = tally.store(world, &page, self.now_ms, from_ms);
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
        self.world.drop_older(self.now_ms - KEPT_MS);
    }

    fn failed(&mut self, request: &Request, failure: &Failure) {
        let random = (self.rng.share() * 1e9) as u64;
        let throttle = failure.throttle.as_ref();
        self.quota
            .refused(QuotaPurpose::Poll, throttle, None, random, self.now_ms);
        let purpose = &request.purpose;
        self.machine
            .failed(self.settings, purpose, failure, self.now_ms, random);
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
            self.world.proven_ms = Some(at_ms);
        }
    }

    /// Ends the posts, and runs until those that exist have come of age.
    fn finish(mut self) -> PollerOutcome {
        let ended_ms = self.now_ms;
        self.world.end(ended_ms);
        // The settling afterwards is not part of the cost of the plan.
        let fetches = self.tallies.each_ref().map(Tally::fetches);
        let end_ms = ended_ms + settling_ms(self.settings);
        while self.now_ms < end_ms {
            self.step(end_ms);
        }
        let first_ms = self.first_ms.unwrap_or(ended_ms);
        let ages = self.settings.rungs.iter().map(|rung| rung.age_ms);
        let last_ms = ages.max().unwrap_or(0);
        let world = &self.world;
        let missed = world.missed().filter(|post| {
            let came_in_time = post.visible_at_ms - time_ms(post.id) <= last_ms;
            time_ms(post.id) >= first_ms && came_in_time
        });
        let missed: Vec<Key> = missed.map(|post| key_of(post.id)).collect();
        let gaps = self.machine.ledger().gaps();
        let is_listed = |key: &&Key| {
            let index = gaps.partition_point(|gap| gap.high <= **key);
            gaps.get(index).is_some_and(|gap| gap.low <= **key)
        };
        let mut outcome = self.outcome;
        outcome.listed = missed.iter().filter(is_listed).count() as u64;
        outcome.missed = missed.len() as u64;
        outcome.posts = world.gone + world.posts.len() as u64;
        outcome.proven_after_ms = self.proven_ms.map(|ms| ms - START_MS);
        let [mut before, after] = self.tallies;
        let early = std::mem::take(&mut before.early);
        let (at, tally) = match self.proven_ms {
            Some(_) => (1, after),
            None => (0, before),
        };
        outcome.fetches_before = fetches[0];
        outcome.fetches_after = fetches[at];
        outcome.delays = tally.delays.into();
        outcome.late_delays = tally.late_delays.into();
        outcome.early = early;
        outcome
    }

    fn anchor(&self, query: &AnchorQuery) -> Option<Anchor> {
        let world = &self.world;
        let number = |key: &Key| -> u64 {
            let id = SCHEME.id(key);
            id.as_str().parse().unwrap_or(0)
        };
        let (range, skip) = match query {
            AnchorQuery::Newest { at_most, skip } => (0..world.first_above(number(at_most)), *skip),
            AnchorQuery::Oldest { at_least, skip } => {
                (world.first_at(number(at_least))..world.posts.len(), *skip)
            }
            AnchorQuery::Drawn {
                low,
                high,
                per_million,
            } => {
                let (from, to) = (world.first_at(number(low)), world.first_at(number(high)));
                let part = (to - from) as u64 * u64::from(*per_million) / 1_000_000;
                (from + part as usize..to, 0)
            }
        };
        let stored = world.posts.range(range).filter(|post| post.is_stored);
        let stored = stored.map(|post| key_of(post.id));
        if matches!(query, AnchorQuery::Newest { .. }) {
            Anchor::first(stored.rev().skip(skip as usize))
        } else {
            Anchor::first(stored.skip(skip as usize))
        }
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
/// Nothing is read that is older than this: a gap that a throttle keeps open may be days old.
const KEPT_MS: i64 = 240 * 3_600_000;
