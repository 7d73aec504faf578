//! A source over a world: the machine, a store in memory, faults and crashes.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Failure, FailureKind},
    timeline::{
        Anchor, AnchorQuery, Gap, GapKind, LookUpOutcome, Machine, Reading, Request,
        RequestPurpose, Settings, Step, Stored,
    },
    upstream_id::{IdOrder, Key, UpstreamId},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{World, WorldPost};

pub(crate) struct Harness {
    pub(crate) world: World,
    pub(crate) settings: Settings,
    pub(crate) now_ms: i64,
    /// Local time less true time.
    pub(crate) clock_error_ms: i64,
    pub(crate) fail_share: f64,
    pub(crate) crash_share: f64,
    pub(crate) mutant: Option<Mutant>,
    /// What every look-up fails with.
    pub(crate) look_ups_fail: Option<FailureKind>,
    /// When posts were looked up, ms.
    pub(crate) look_ups: Vec<(UpstreamId, i64)>,
    pub(crate) machine: Machine,
    pub(crate) stored: BTreeMap<Key, Row>,
    pub(crate) fetched: u64,
    pub(crate) requests: u64,
    /// When each request that is no poll was sent.
    pub(crate) others_ms: Vec<i64>,
    pub(crate) crashes: u64,
    durable: (String, Vec<Gap>),
    rng: ChaCha8Rng,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Row {
    pub(crate) deleted: bool,
    /// When a page lacked it first, ms, and whether a second one did, a minute later or more.
    absent_ms: Option<i64>,
    pub(crate) left: bool,
}

impl Row {
    fn is_live(&self) -> bool {
        !self.deleted && !self.left
    }
}

/// Faults put in on purpose, which the laws must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    GapClosedByShortPage,
    CursorBeforePosts,
}

impl Harness {
    pub(crate) fn new(world: World, settings: Settings, start_ms: i64, seed: u64) -> Self {
        let machine = Machine::default();
        Self {
            world,
            settings,
            now_ms: start_ms,
            clock_error_ms: 0,
            fail_share: 0.0,
            crash_share: 0.0,
            mutant: None,
            look_ups_fail: None,
            look_ups: Vec::new(),
            durable: (serde_json::to_string(&machine).unwrap(), Vec::new()),
            machine,
            stored: BTreeMap::new(),
            fetched: 0,
            requests: 0,
            others_ms: Vec::new(),
            crashes: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(crate) fn abilities(&self) -> Abilities {
        Abilities {
            page_limit: self.world.page_limit as u16,
            min_id: true,
        }
    }

    /// Runs until the world's clock shows `until_ms`, checking after each step.
    pub(crate) fn run(&mut self, until_ms: i64, check: impl Fn(&Self)) {
        while self.now_ms < until_ms {
            self.step(until_ms, false);
            check(self);
        }
    }

    /// Runs until the last rung of everything before now has passed.
    pub(crate) fn settle(&mut self, check: impl Fn(&Self)) {
        let before_ms = self.clock_ms() + 10_000;
        let deadline_ms = self.now_ms + 4 * 3_600_000;
        let rungs = self.settings.rungs.len() + 1;
        while !self.machine.is_settled(&self.settings, before_ms, rungs) {
            assert!(
                self.now_ms < deadline_ms,
                "does not settle: {:?}",
                self.machine.ledger()
            );
            self.step(deadline_ms, true);
            check(self);
        }
    }

    pub(crate) fn step(&mut self, until_ms: i64, settling: bool) {
        let clock_ms = self.clock_ms();
        let abilities = self.abilities();
        let step = self
            .machine
            .next(&self.settings, abilities, clock_ms, settling);
        self.machine.sent(&step, clock_ms);
        if std::env::var_os("DRIFTLINE_TRACE").is_some() {
            eprintln!("{clock_ms} {step:?}");
        }
        match step {
            Step::Wait { until_ms: wait_ms } => {
                assert!(wait_ms > clock_ms, "waits for a time that has passed");
                self.now_ms = (wait_ms - self.clock_error_ms).min(until_ms);
            }
            Step::LookUp(id) => self.look_up(&id),
            Step::Fetch(fetch) => {
                let anchor = fetch.anchor_query().and_then(|query| self.anchor(query));
                let request = fetch.request(self.machine.scheme(), anchor.as_ref());
                self.requests += 1;
                if request.purpose != RequestPurpose::Poll {
                    self.others_ms.push(self.now_ms);
                }
                self.now_ms += self.rng.random_range(1..60);
                if self.rng.random_bool(self.fail_share) {
                    self.fail(&request.purpose);
                    return;
                }
                let mut page = self.world.page(&request.page, self.now_ms, self.clock_ms());
                self.fetched += page.listed.len() as u64;
                let scheme = self.machine.scheme().copied();
                let reading = Reading::check(&mut page, scheme, &self.settings);
                let (mut machine, absent) = self.after_page(&request, &reading, &page.headers);
                if self.mutant == Some(Mutant::GapClosedByShortPage)
                    && let RequestPurpose::Fill { low, .. } = &request.purpose
                    && page.listed.len() < self.world.page_limit
                {
                    let gaps = machine.ledger().gaps().to_vec();
                    machine.restore_gaps(gaps.into_iter().filter(|gap| gap.low != *low).collect());
                }
                if self.mutant == Some(Mutant::CursorBeforePosts) {
                    self.save(&machine);
                }
                if self.rng.random_bool(self.crash_share) {
                    self.crash();
                    return;
                }
                for key in &reading.keys {
                    self.stored.insert(key.clone(), Row::default());
                }
                for (key, is_second) in absent {
                    let row = self.stored.entry(key).or_default();
                    row.absent_ms.get_or_insert(self.now_ms);
                    row.left |= is_second;
                }
                self.save(&machine);
                self.machine = machine;
                if self.rng.random_bool(self.crash_share) {
                    self.crash();
                }
            }
        }
    }

    /// Takes a head page in as if the first poll had brought it.
    pub(crate) fn take(&mut self, page: &driftline_core::answer::Page) {
        let clock_ms = self.clock_ms();
        let abilities = self.abilities();
        let Step::Fetch(fetch) = self
            .machine
            .next(&self.settings, abilities, clock_ms, false)
        else {
            panic!("a new machine polls first");
        };
        self.machine.sent(&Step::Fetch(fetch.clone()), clock_ms);
        let request = fetch.request(None, None);
        let reading = Reading::check(&mut page.clone(), None, &self.settings);
        self.machine = self.after_page(&request, &reading, &page.headers).0;
        for key in &reading.keys {
            self.stored.entry(key.clone()).or_default();
        }
    }

    /// The machine after a page, and the posts that the page lacks: whether it is the second one.
    fn after_page(
        &self,
        request: &Request,
        reading: &Reading,
        headers: &AnswerHeaders,
    ) -> (Machine, Vec<(Key, bool)>) {
        let (outcome, absent) = self.outcome(request, reading);
        let mut machine = self.machine.clone();
        let abilities = self.abilities();
        machine.page(
            &self.settings,
            abilities,
            request,
            reading,
            headers,
            &outcome,
        );
        (machine, absent)
    }

    /// Posts that were shown and are not stored, though the ledger lists the
    /// place of none of them as incomplete. Law 1 says that there are none.
    pub(crate) fn unaccounted(&self) -> Vec<&WorldPost> {
        let ledger = self.machine.ledger();
        let (Some(origin), Some(frontier)) = (ledger.origin(), ledger.frontier()) else {
            return Vec::new();
        };
        self.shown()
            .filter(|post| {
                let key = self.key(post.id);
                !self.stored.contains_key(&key)
                    && key >= *origin
                    && key < *frontier
                    && !ledger
                        .gaps()
                        .iter()
                        .any(|gap| gap.low <= key && key < gap.high)
            })
            .collect()
    }

    /// Posts that were visible and are not stored.
    pub(crate) fn missed(&self) -> Vec<&WorldPost> {
        self.shown()
            .filter(|post| !self.stored.contains_key(&self.key(post.id)))
            .collect()
    }

    pub(crate) fn assert_ledger_is_sound(&self) {
        let gaps = self.machine.ledger().gaps();
        let mut below = Key::lowest();
        for gap in gaps {
            assert!(gap.low < gap.high, "an empty range: {gap:?}");
            assert!(gap.low >= below, "ranges overlap: {gaps:?}");
            below = gap.high.clone();
            let read = gap.provisional();
            assert!(
                read.is_none_or(|read| read.from_ms <= read.until_ms),
                "times of {gap:?}"
            );
        }
        if let Some(frontier) = self.machine.ledger().frontier() {
            assert!(below <= *frontier, "a range beyond the frontier: {gaps:?}");
        }
        assert!(gaps.len() < 600, "the ledger grows without bound: {gaps:?}");
    }

    pub(crate) fn open_gaps(&self) -> usize {
        self.count(|kind| matches!(kind, GapKind::Open { .. }))
    }

    pub(crate) fn unrecoverable(&self) -> usize {
        self.count(|kind| matches!(kind, GapKind::Unrecoverable))
    }

    pub(crate) fn restart(&mut self) {
        let mut machine: Machine = serde_json::from_str(&self.durable.0).unwrap();
        machine.restore_gaps(self.durable.1.clone());
        self.machine = machine;
    }

    pub(crate) fn key(&self, number: u64) -> Key {
        let codec = self.world.codec;
        codec.order().key(&codec.id(number)).unwrap()
    }

    pub(crate) fn clock_ms(&self) -> i64 {
        self.now_ms + self.clock_error_ms
    }

    fn count(&self, test: impl Fn(&GapKind) -> bool) -> usize {
        self.machine
            .ledger()
            .gaps()
            .iter()
            .filter(|gap| test(&gap.kind))
            .count()
    }

    fn shown(&self) -> impl Iterator<Item = &WorldPost> {
        // A post that was deleted soon may never have been on any page.
        self.world
            .posts
            .iter()
            .filter(|post| World::is_visible(post, self.now_ms))
    }

    fn outcome(&self, request: &Request, reading: &Reading) -> (Stored, Vec<(Key, bool)>) {
        let absence = self.machine.absence_range(request, reading);
        let earlier = absence.iter().flat_map(|range| &range.shown);
        let on_page: BTreeSet<&Key> = reading.keys.iter().chain(earlier).collect();
        let absent = absence.iter().flat_map(|range| {
            let stored = self.stored.range(range.low.clone()..range.high.clone());
            stored.filter(|(key, row)| row.is_live() && !on_page.contains(key))
        });
        let missing: Vec<(&Key, &Row)> = absent.collect();
        let id = |key: &Key| self.world.codec.order().id(key);
        let absent: Vec<UpstreamId> = missing.iter().map(|(key, _)| id(key)).collect();
        let is_proven = absence.as_ref().is_some_and(|range| range.is_proven);
        let is_second = |row: &Row| {
            let later = |ms: i64| self.now_ms >= ms + 60_000;
            is_proven && row.absent_ms.is_some_and(later)
        };
        if absence.as_ref().is_some_and(|range| range.is_proven) {
            let is_absent = |post: &&WorldPost| absent.contains(&self.world.codec.id(post.id));
            let there = self.shown().find(is_absent);
            assert_eq!(there, None, "it is not on the page: {request:?}");
        }
        let suspects = missing.iter().filter(|(_, row)| !is_second(row));
        let suspects = suspects.map(|(key, _)| id(key)).collect();
        let covered = missing.iter().filter(|_| is_proven);
        let covered = covered.map(|(key, row)| ((*key).clone(), is_second(row)));
        let covered = covered.collect();
        let stored = Stored {
            new: reading
                .keys
                .iter()
                .map(|key| !self.stored.contains_key(key))
                .collect(),
            edited: 0,
            absent: suspects,
            live_below: self
                .machine
                .nothing_below(request, reading)
                .and_then(|high| self.anchor(&AnchorQuery::below(high))?.below(high)),
        };
        (stored, covered)
    }

    fn anchor(&self, query: &AnchorQuery) -> Option<Anchor> {
        query.among(&self.stored, Row::is_live)
    }

    fn look_up(&mut self, id: &UpstreamId) {
        self.requests += 1;
        self.look_ups.push((id.clone(), self.now_ms));
        self.others_ms.push(self.now_ms);
        self.now_ms += 20;
        if let Some(kind) = self.look_ups_fail {
            let (failure, random) = (Failure::new(kind, "refused"), self.rng.random());
            let (settings, clock_ms) = (self.settings.clone(), self.clock_ms());
            self.machine
                .look_up_failed(&settings, id, &failure, clock_ms, random);
            let machine = self.machine.clone();
            self.save(&machine);
            return;
        }
        let headers = self
            .world
            .page(&Default::default(), self.now_ms, self.clock_ms())
            .headers;
        let gone = self.world.is_gone(id, self.now_ms);
        let outcome = match gone {
            true => LookUpOutcome::Gone,
            false => LookUpOutcome::Found,
        };
        self.machine.looked_up(id, outcome, &headers);
        if gone {
            self.stored
                .entry(self.world.codec.order().key(id).unwrap())
                .or_default()
                .deleted = true;
        }
        let machine = self.machine.clone();
        self.save(&machine);
    }

    fn fail(&mut self, purpose: &RequestPurpose) {
        let kind = [
            FailureKind::ServerError,
            FailureKind::NotJson,
            FailureKind::Truncated,
        ][self.rng.random_range(0..3)];
        let random = self.rng.random();
        let clock_ms = self.clock_ms();
        self.machine.failed(
            &self.settings,
            purpose,
            &Failure::new(kind, "a fault"),
            clock_ms,
            random,
        );
    }

    fn save(&mut self, machine: &Machine) {
        self.durable = (
            serde_json::to_string(machine).unwrap(),
            machine.ledger().gaps().to_vec(),
        );
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.now_ms += self.rng.random_range(10..5_000);
        self.restart();
    }
}

pub(crate) fn key(id: u64) -> Key {
    IdOrder::Numeric
        .key(&UpstreamId::new(id.to_string()))
        .unwrap()
}
