//! Driftline's session over a simulated upstream, with a set in memory as its store.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use driftline_core::{
    answer::{Abilities, AnswerHeaders, Failure, FailureKind, LookUp},
    clock::ClockReading,
    quota::QuotaView,
    timeline::{
        Anchor, AnchorQuery, LookUpOutcome, Machine, Reading, Request, RequestPurpose, Session,
        Settings, Stored,
        session::{
            Action, Event, Finish, GoneProof, LookUpCommit, PageCommit, PageCommitted, PageFetch,
            StepContext, StreamView,
        },
    },
    upstream_id::{Key, UpstreamId},
};
use driftline_sim::Upstream;

/// A source being copied in virtual time.
#[derive(Debug)]
pub(crate) struct Copy {
    settings: Settings,
    session: Session,
    stored: BTreeMap<Key, Row>,
    now_ms: i64,
    random: u64,
    /// What was asked for and came, by purpose.
    pub(crate) spent: BTreeMap<Reason, Spent>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
    edited_at_ms: Option<i64>,
    deleted: bool,
}

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Poll,
    Fill,
    /// A rung; 0 is the second look.
    Look(usize),
    Probe,
    /// A place where a page lacked posts.
    Recheck,
    /// Posts dated ahead.
    Ahead,
    LookUp,
}

/// What was asked for one purpose, and what came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) fetched: u64,
    pub(crate) new: u64,
}

impl Copy {
    /// Nothing stored, nothing asked.
    pub(crate) fn new(settings: Settings, start_ms: i64) -> Self {
        let session = Session::new(
            Machine::default(),
            settings.clone(),
            ABILITIES,
            clock(start_ms),
        );
        Self {
            settings,
            session,
            stored: BTreeMap::new(),
            now_ms: start_ms,
            random: 0,
            spent: BTreeMap::new(),
        }
    }

    /// Reads until a time, Unix ms.
    pub(crate) fn run(&mut self, upstream: &mut Upstream, until_ms: i64) {
        while self.now_ms < until_ms {
            self.step(upstream, until_ms, false);
        }
    }

    /// Reads on until the last rung of all that was published has passed; `false` if that has not
    /// come by `deadline_ms`.
    pub(crate) fn settle(&mut self, upstream: &mut Upstream, deadline_ms: i64) -> bool {
        let before_ms = self.now_ms;
        let rungs = self.settings.rungs.len() + 1;
        while !self.machine().is_settled(&self.settings, before_ms, rungs) {
            if self.now_ms >= deadline_ms {
                return false;
            }
            self.step(upstream, deadline_ms, true);
        }
        true
    }

    /// The time, Unix ms.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The machine in its current state.
    pub(crate) fn machine(&self) -> &Machine {
        self.session.machine()
    }

    /// The IDs of every post that was stored.
    pub(crate) fn ids(&self) -> HashSet<UpstreamId> {
        let Some(scheme) = self.machine().scheme() else {
            return HashSet::new();
        };
        self.stored.keys().map(|key| scheme.id(key)).collect()
    }

    /// The sums over all purposes.
    pub(crate) fn total(&self) -> Spent {
        let mut total = Spent::default();
        for spent in self.spent.values() {
            total.requests += spent.requests;
            total.failures += spent.failures;
            total.fetched += spent.fetched;
            total.new += spent.new;
        }
        total
    }

    fn step(&mut self, upstream: &mut Upstream, until_ms: i64, settling: bool) {
        let mut action = self.session.begin(&StepContext {
            clock: clock(self.now_ms),
            quota: QuotaView::default(),
            stream: StreamView::default(),
            server_answered_ms: None,
            max_held_bytes: usize::MAX,
            settling,
        });
        loop {
            let event = match action {
                Action::Finish(Finish::Wait { until_ms: wait_ms }) => {
                    self.now_ms = wait_ms.min(until_ms);
                    return;
                }
                Action::Finish(_) => return,
                Action::Reserve(_) => Event::Reserved,
                Action::FindAnchor(query) => Event::Anchor(self.anchor(&query)),
                Action::FindPositions(_) => Event::Positions(HashMap::new()),
                Action::FetchPage(fetch) => self.fetch(upstream, &fetch),
                // Their order is not measured, and the pages' commits store them.
                Action::StorePosts(_) => Event::PostsStored { new: 0 },
                Action::CommitPage(commit) => self.commit(&commit),
                Action::LookUp(id) => self.look_up(upstream, &id),
                Action::ProveAbsence(_) => Event::Proof(Ok(GoneProof::Deleted)),
                Action::CommitLookUp(commit) => self.commit_look_up(&commit),
                Action::SaveMachine => Event::Saved,
            };
            let random = self.random();
            action = self.session.handle(event, clock(self.now_ms), random);
        }
    }

    fn fetch(&mut self, upstream: &mut Upstream, fetch: &PageFetch) -> Event {
        let answer = upstream.answer(self.now_ms, TOKEN, &fetch.page);
        let answer = self.wait(upstream, answer);
        let reason = Reason::of(&fetch.request.purpose);
        let spent = self.spent.entry(reason).or_default();
        spent.requests += 1;
        match &answer {
            Ok(page) => spent.fetched += page.listed.len() as u64,
            Err(_) => spent.failures += 1,
        }
        Event::Page {
            answer: Box::new(answer),
            other_changes: 0,
        }
    }

    fn commit(&mut self, commit: &PageCommit) -> Event {
        let PageCommit {
            request,
            reading,
            page,
        } = commit;
        let mut stored = Stored {
            absent: self.absent(request, reading),
            ..Stored::default()
        };
        for (key, listed) in reading.keys.iter().zip(&page.listed) {
            let edited_at_ms = listed.post.edited_at_ms;
            let before = self.stored.insert(
                key.clone(),
                Row {
                    edited_at_ms,
                    deleted: false,
                },
            );
            stored.new.push(before.is_none());
            stored.edited += u64::from(before.is_some_and(|row| row.edited_at_ms < edited_at_ms));
        }
        let new = stored.new.iter().filter(|is_new| **is_new).count() as u64;
        let spent = self.spent.entry(Reason::of(&request.purpose)).or_default();
        spent.new += new;
        let mut machine = self.machine().clone();
        machine.page(
            &self.settings,
            ABILITIES,
            request,
            reading,
            &page.headers,
            &stored,
        );
        Event::PageCommitted(Box::new(PageCommitted {
            machine,
            new,
            missing: stored.absent.len() as u64,
            rechecks_ms: vec![None; page.listed.len()],
        }))
    }

    fn look_up(&mut self, upstream: &mut Upstream, id: &UpstreamId) -> Event {
        let sent_at_ms = self.now_ms;
        let answer = upstream.look_up(sent_at_ms, TOKEN, id);
        let answer = self.wait(upstream, answer);
        let spent = self.spent.entry(Reason::LookUp).or_default();
        spent.requests += 1;
        spent.failures += u64::from(answer.is_err());
        spent.fetched += u64::from(matches!(answer, Ok(LookUp::Found(_))));
        let headers = AnswerHeaders {
            sent_at_ms,
            received_at_ms: self.now_ms,
            round_trip_ms: self.now_ms - sent_at_ms,
            ..AnswerHeaders::default()
        };
        Event::LookedUp(answer.map(|look_up| (look_up, headers)))
    }

    fn commit_look_up(&mut self, commit: &LookUpCommit) -> Event {
        let mut machine = self.machine().clone();
        machine.looked_up(&commit.id, commit.outcome(), &commit.headers);
        let key = machine
            .scheme()
            .and_then(|scheme| scheme.key(&commit.id).ok());
        if commit.outcome() == LookUpOutcome::Gone
            && let Some(row) = key.and_then(|key| self.stored.get_mut(&key))
        {
            row.deleted = true;
        }
        Event::LookUpCommitted {
            machine: Box::new(machine),
            left: 0,
        }
    }

    /// Lets the time pass until the answer is there, or the client's timeout.
    fn wait<T>(&mut self, upstream: &Upstream, answer: Result<T, Failure>) -> Result<T, Failure> {
        let waited_ms = upstream.received_at_ms() - self.now_ms;
        self.now_ms += waited_ms.min(TIMEOUT_MS);
        if waited_ms > TIMEOUT_MS {
            return Err(Failure::new(
                FailureKind::TimedOut,
                "nothing came for too long",
            ));
        }
        answer
    }

    /// Any numbers will do, as long as they are the same in every run.
    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        self.random
    }

    fn anchor(&self, query: &AnchorQuery) -> Option<Anchor> {
        query.among(&self.stored, |row| !row.deleted)
    }

    fn absent(&self, request: &Request, reading: &Reading) -> Vec<UpstreamId> {
        let range = self.machine().absence_range(request, reading);
        let (Some(range), Some(scheme)) = (range, reading.scheme) else {
            return Vec::new();
        };
        let on_page: BTreeSet<&Key> = reading.keys.iter().collect();
        self.stored
            .range(range.low..range.high)
            .filter(|(key, row)| !row.deleted && !on_page.contains(key))
            .map(|(key, _)| scheme.id(key))
            .collect()
    }
}

impl Reason {
    fn of(purpose: &RequestPurpose) -> Self {
        match purpose {
            RequestPurpose::Poll => Self::Poll,
            RequestPurpose::Fill { .. } => Self::Fill,
            RequestPurpose::Look { rung, .. } => Self::Look(*rung),
            RequestPurpose::Probe { .. } => Self::Probe,
            RequestPurpose::Recheck { .. } => Self::Recheck,
            RequestPurpose::Ahead => Self::Ahead,
        }
    }

    /// Its name in tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Poll => "polls".to_owned(),
            Self::Fill => "filling gaps".to_owned(),
            Self::Look(0) => "second look".to_owned(),
            Self::Look(rung) => format!("rung {rung}"),
            Self::Probe => "probes".to_owned(),
            Self::Recheck => "places read again".to_owned(),
            Self::Ahead => "dated ahead".to_owned(),
            Self::LookUp => "look-ups".to_owned(),
        }
    }
}

fn clock(now_ms: i64) -> ClockReading {
    ClockReading {
        wall_ms: now_ms,
        steady_ms: now_ms,
    }
}

pub(crate) const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    min_id: true,
};
/// The client's read timeout.
const TIMEOUT_MS: i64 = 30_000;
pub(crate) const TOKEN: &str = "t";
