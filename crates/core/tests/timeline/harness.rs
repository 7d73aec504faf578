//! A source over a world: the session, a store in memory, faults and crashes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use driftline_core::{
    answer::{Abilities, Failure, FailureKind, LookUp, Page},
    clock::ClockReading,
    quota::QuotaView,
    timeline::{
        Anchor, AnchorQuery, Gap, GapKind, LookUpOutcome, Machine, Reading, Request,
        RequestPurpose, Session, Settings, Stored,
        session::{
            Action, Event, Finish, GoneProof, LookUpCommit, PageCommit, PageCommitted, PageFetch,
            StepContext, StreamView,
        },
    },
    upstream_id::{IdOrder, Key, UpstreamId},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::world::{World, WorldPost, listed_at};

pub(crate) struct Harness {
    pub(crate) world: World,
    pub(crate) settings: Settings,
    pub(crate) now_ms: i64,
    /// Local time less true time.
    pub(crate) clock_error_ms: i64,
    /// The clock error from the next answer on, ms.
    pub(crate) step_at_answer_ms: Option<i64>,
    pub(crate) fail_share: f64,
    pub(crate) crash_share: f64,
    pub(crate) mutant: Option<Mutant>,
    /// What every look-up fails with.
    pub(crate) look_ups_fail: Option<FailureKind>,
    /// How much memory held pages may take, in bytes.
    pub(crate) max_held_bytes: usize,
    /// When posts were looked up, ms.
    pub(crate) look_ups: Vec<(UpstreamId, i64)>,
    session: Option<Session>,
    /// The stored machine that the next session goes on with.
    restored: Machine,
    /// What the next request is answered by.
    next_page: Option<Page>,
    pub(crate) stored: BTreeMap<Key, Row>,
    /// The stored posts, in the order in which they were stored.
    pub(crate) order: Vec<Key>,
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
    /// It was stored before a page that shows it was committed.
    is_early: bool,
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
        Self {
            world,
            settings,
            now_ms: start_ms,
            clock_error_ms: 0,
            step_at_answer_ms: None,
            fail_share: 0.0,
            crash_share: 0.0,
            mutant: None,
            look_ups_fail: None,
            max_held_bytes: usize::MAX,
            look_ups: Vec::new(),
            durable: (
                serde_json::to_string(&Machine::default()).unwrap(),
                Vec::new(),
            ),
            session: None,
            restored: Machine::default(),
            next_page: None,
            stored: BTreeMap::new(),
            order: Vec::new(),
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
        while !self.machine().is_settled(&self.settings, before_ms, rungs) {
            assert!(
                self.now_ms < deadline_ms,
                "does not settle: {:?}",
                self.machine().ledger()
            );
            self.step(deadline_ms, true);
            check(self);
        }
    }

    /// One step of the session, as any shell carries it out.
    pub(crate) fn step(&mut self, until_ms: i64, settling: bool) {
        let context = StepContext {
            clock: self.clock(),
            quota: QuotaView::default(),
            stream: StreamView::default(),
            server_answered_ms: None,
            max_held_bytes: self.max_held_bytes,
            settling,
        };
        let mut action = self.session().begin(&context);
        loop {
            if std::env::var_os("DRIFTLINE_TRACE").is_some() {
                eprintln!("{} {action:?}", self.clock_ms());
            }
            let event = match action {
                Action::Finish(Finish::Wait { until_ms: wait_ms }) => {
                    assert!(
                        wait_ms > self.clock_ms(),
                        "waits for a time that has passed"
                    );
                    self.now_ms = (wait_ms - self.clock_error_ms).min(until_ms);
                    return;
                }
                Action::Finish(_) => return,
                Action::Reserve(_) => {
                    self.requests += 1;
                    Event::Reserved
                }
                Action::FindAnchor(query) => Event::Anchor(self.anchor(&query)),
                Action::FindPositions(_) => Event::Positions(HashMap::new()),
                Action::FetchPage(fetch) => self.fetch(&fetch),
                Action::StorePosts(pages) => match self.store_posts(&pages) {
                    Some(new) => Event::PostsStored { new },
                    None => return self.crash(),
                },
                Action::CommitPage(commit) => match self.commit(&commit) {
                    Some(committed) => Event::PageCommitted(Box::new(committed)),
                    None => return self.crash(),
                },
                Action::LookUp(id) => self.look_up(&id),
                Action::ProveAbsence(_) => Event::Proof(Ok(GoneProof::Deleted)),
                Action::CommitLookUp(commit) => self.commit_look_up(&commit),
                Action::SaveMachine => {
                    self.save(&self.machine().clone());
                    Event::Saved
                }
            };
            let (clock, random) = (self.clock(), self.rng.random());
            action = self.session().handle(event, clock, random);
        }
    }

    fn session(&mut self) -> &mut Session {
        let (clock, abilities) = (self.clock(), self.abilities());
        let machine = &self.restored;
        let settings = &self.settings;
        self.session.get_or_insert_with(|| {
            Session::new(machine.clone(), settings.clone(), abilities, clock)
        })
    }

    /// The machine as the session has it, else as it is stored.
    pub(crate) fn machine(&self) -> &Machine {
        match &self.session {
            Some(session) => session.machine(),
            None => &self.restored,
        }
    }

    /// Requests a fill of the open gap that begins there.
    pub(crate) fn request_fill(&mut self, low: &Key) -> bool {
        let id = self.world.codec.order().id(low);
        self.session().request_fill(&id)
    }

    fn fetch(&mut self, fetch: &PageFetch) -> Event {
        if fetch.request.purpose != RequestPurpose::Poll {
            self.others_ms.push(self.now_ms);
        }
        let answer = match self.next_page.take() {
            Some(page) => Ok(page),
            None => {
                self.now_ms += self.rng.random_range(1..60);
                match self.rng.random_bool(self.fail_share) {
                    true => Err(self.failure()),
                    false => Ok(self.world.page(&fetch.page, self.now_ms, self.clock_ms())),
                }
            }
        };
        let error_ms = self.step_at_answer_ms.take();
        self.clock_error_ms = error_ms.unwrap_or(self.clock_error_ms);
        self.fetched += answer.as_ref().map_or(0, |page| page.listed.len() as u64);
        Event::Page {
            answer: Box::new(answer),
            other_changes: 0,
        }
    }

    /// Stores the posts of pages, the oldest first; `None` if the process died before or after.
    fn store_posts(&mut self, pages: &[Arc<PageCommit>]) -> Option<u64> {
        if self.rng.random_bool(self.crash_share) {
            return None;
        }
        let before = self.order.len();
        let keys: BTreeSet<&Key> = pages.iter().flat_map(|page| &page.reading.keys).collect();
        for key in keys {
            let early = Row {
                is_early: true,
                ..Row::default()
            };
            self.store(key, early, false);
        }
        let new = (self.order.len() - before) as u64;
        (!self.rng.random_bool(self.crash_share)).then_some(new)
    }

    fn store(&mut self, key: &Key, row: Row, replaces: bool) {
        if !self.stored.contains_key(key) {
            self.order.push(key.clone());
        } else if !replaces {
            return;
        }
        self.stored.insert(key.clone(), row);
    }

    /// Commits a page; `None` if the process died before or after.
    fn commit(&mut self, commit: &PageCommit) -> Option<PageCommitted> {
        let PageCommit {
            request, reading, ..
        } = commit;
        let (stored, absent) = self.outcome(request, reading);
        let mut machine = self.after_page(commit, &stored);
        if self.mutant == Some(Mutant::GapClosedByShortPage)
            && let RequestPurpose::Fill { low, .. } = &request.purpose
            && commit.page.listed.len() < self.world.page_limit
        {
            let gaps = machine.ledger().gaps().to_vec();
            machine.restore_gaps(gaps.into_iter().filter(|gap| gap.low != *low).collect());
        }
        if self.mutant == Some(Mutant::CursorBeforePosts) {
            self.save(&machine);
        }
        if self.rng.random_bool(self.crash_share) {
            return None;
        }
        for key in reading.keys.iter().rev() {
            self.store(key, Row::default(), true);
        }
        for (key, is_second) in absent {
            let row = self.stored.entry(key).or_default();
            row.absent_ms.get_or_insert(self.now_ms);
            row.left |= is_second;
        }
        self.save(&machine);
        if self.rng.random_bool(self.crash_share) {
            return None;
        }
        Some(PageCommitted {
            machine,
            new: stored.new.iter().filter(|is_new| **is_new).count() as u64,
            missing: stored.absent.len() as u64,
            rechecks_ms: vec![None; reading.keys.len()],
        })
    }

    /// Lets the next request, whichever it is, be answered by this page.
    pub(crate) fn take(&mut self, page: &Page) {
        self.next_page = Some(page.clone());
        self.step(self.now_ms, false);
        assert_eq!(self.next_page, None, "a new machine polls first");
    }

    fn after_page(&self, commit: &PageCommit, stored: &Stored) -> Machine {
        let mut machine = self.machine().clone();
        machine.page(
            &self.settings,
            self.abilities(),
            &commit.request,
            &commit.reading,
            &commit.page.headers,
            stored,
        );
        machine
    }

    /// Posts that were shown and are not stored, though the ledger lists the
    /// place of none of them as incomplete. Law 1 says that there are none.
    pub(crate) fn unaccounted(&self) -> Vec<&WorldPost> {
        let ledger = self.machine().ledger();
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
        let gaps = self.machine().ledger().gaps();
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
        if let Some(frontier) = self.machine().ledger().frontier() {
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
        self.session = None;
        self.restored = restored(&self.durable);
    }

    pub(crate) fn key(&self, number: u64) -> Key {
        let codec = self.world.codec;
        codec.order().key(&codec.id(number)).unwrap()
    }

    pub(crate) fn clock(&self) -> ClockReading {
        ClockReading {
            wall_ms: self.clock_ms(),
            steady_ms: self.now_ms,
        }
    }

    pub(crate) fn clock_ms(&self) -> i64 {
        self.now_ms + self.clock_error_ms
    }

    fn count(&self, test: impl Fn(&GapKind) -> bool) -> usize {
        self.machine()
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
        let absence = self.machine().absence_range(request, reading);
        let earlier = absence.iter().flat_map(|range| &range.shown);
        let on_page: BTreeSet<&Key> = reading.keys.iter().chain(earlier).collect();
        let absent = absence.iter().flat_map(|range| {
            let stored = self.stored.range(range.low.clone()..range.high.clone());
            stored.filter(|(key, row)| row.is_live() && !row.is_early && !on_page.contains(key))
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
                .map(|key| self.stored.get(key).is_none_or(|row| row.is_early))
                .collect(),
            edited: 0,
            absent: suspects,
            live_below: self
                .machine()
                .nothing_below(request, reading)
                .and_then(|high| self.anchor(&AnchorQuery::below(high))?.below(high)),
        };
        (stored, covered)
    }

    fn anchor(&self, query: &AnchorQuery) -> Option<Anchor> {
        query.among(&self.stored, Row::is_live)
    }

    fn look_up(&mut self, id: &UpstreamId) -> Event {
        self.look_ups.push((id.clone(), self.now_ms));
        self.others_ms.push(self.now_ms);
        self.now_ms += 20;
        if let Some(kind) = self.look_ups_fail {
            return Event::LookedUp(Err(Failure::new(kind, "refused")));
        }
        let headers = self
            .world
            .page(&Default::default(), self.now_ms, self.clock_ms())
            .headers;
        let look_up = match self.world.is_gone(id, self.now_ms) {
            true => LookUp::Gone,
            false => LookUp::Found(Box::new(listed_at(id.clone()).post)),
        };
        Event::LookedUp(Ok((look_up, headers)))
    }

    fn commit_look_up(&mut self, commit: &LookUpCommit) -> Event {
        let mut machine = self.machine().clone();
        machine.looked_up(&commit.id, commit.outcome(), &commit.headers);
        if commit.outcome() == LookUpOutcome::Gone {
            let key = self.world.codec.order().key(&commit.id).unwrap();
            self.stored.entry(key).or_default().deleted = true;
        }
        self.save(&machine);
        Event::LookUpCommitted {
            machine: Box::new(machine),
            left: 0,
        }
    }

    fn failure(&mut self) -> Failure {
        let kind = [
            FailureKind::ServerError,
            FailureKind::NotJson,
            FailureKind::Truncated,
        ][self.rng.random_range(0..3)];
        Failure::new(kind, "a fault")
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

fn restored((json, gaps): &(String, Vec<Gap>)) -> Machine {
    let mut machine: Machine = serde_json::from_str(json).unwrap();
    machine.restore_gaps(gaps.clone());
    machine
}

pub(crate) fn key(id: u64) -> Key {
    IdOrder::Numeric
        .key(&UpstreamId::new(id.to_string()))
        .unwrap()
}
