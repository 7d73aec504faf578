//! The session over a workload.

use std::collections::HashMap;

use driftline_core::{
    answer::{Abilities, Listed, LookUp, Page},
    clock::ClockReading,
    post::Post,
    quota::{Grant, QuotaLedger, QuotaPurpose},
    rng::Rng,
    timeline::{
        Anchor, AnchorQuery, IdScheme, Machine, Session, Settings, Stored,
        session::{
            Action, Event, Finish, GoneProof, PageCommit, PageCommitted, PageFetch, StepContext,
            StreamView,
        },
    },
    upstream_id::{Key, UpstreamId},
};

use super::{
    outcome::{PlanChange, PollerOutcome, Tally},
    server::{PAGE, ROUND_TRIP_MS, START_MS, WorkloadPost, WorkloadServer, headers},
    tail::Workload,
};

/// The length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// The limit if the bound is not proven, in ms.
    pub unproven_ms: i64,
    /// The time after the proof, in ms.
    pub proven_ms: i64,
}

impl Length {
    /// The longest virtual time of a [`run`], in ms.
    pub fn max_ms(&self, settings: &Settings) -> i64 {
        self.unproven_ms + settling_ms(settings)
    }
}

/// The time from a run's end until all published posts are old enough, in ms.
fn settling_ms(settings: &Settings) -> i64 {
    let ages = settings.rungs.iter().map(|rung| rung.age_ms);
    let last_ms = ages.max().unwrap_or(0);
    last_ms + last_ms / 3
}

/// Lets the session copy a workload, until all published posts are old enough. `passed` is called
/// with the elapsed virtual time in ms.
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
    server: WorkloadServer,
    session: Session,
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
        let server = WorkloadServer::new(workload.clone(), seed);
        let now_ms = server.first_poll_ms();
        // The server's IDs are known, so that no posts are read to detect them.
        let known = Settings {
            id_order: Some(SCHEME.order),
            id_layout: SCHEME.layout.map(|layout| layout.name().to_owned()),
            ..settings.clone()
        };
        Self {
            settings,
            session: Session::new(Machine::default(), known, ABILITIES, clock(now_ms)),
            quota: QuotaLedger::default(),
            now_ms,
            server,
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
        let mut action = self.session.begin(&StepContext {
            clock: clock(self.now_ms),
            quota: self.quota.view(self.now_ms),
            stream: StreamView::default(),
            server_answered_ms: None,
            max_held_bytes: usize::MAX,
            settling: false,
        });
        loop {
            let event = match action {
                Action::Finish(Finish::Wait { until_ms: wait_ms }) => {
                    self.now_ms = wait_ms.min(until_ms).max(self.now_ms + 1);
                    return;
                }
                Action::Finish(_) => return,
                Action::Reserve(_) => {
                    let posts = PAGE as u32;
                    let purpose = QuotaPurpose::Poll;
                    match self.quota.take(1, posts, purpose, 0.0, self.now_ms) {
                        Grant::Until(until_ms) => Event::Refused { until_ms },
                        Grant::Requests(_) => Event::Reserved,
                    }
                }
                Action::FindAnchor(query) => Event::Anchor(self.anchor(&query)),
                Action::FindPositions(_) => Event::Positions(HashMap::new()),
                Action::FetchPage(fetch) => self.fetch(&fetch),
                // The pages' commits store them, at the same time.
                Action::StorePosts(_) => Event::PostsStored { new: 0 },
                Action::CommitPage(commit) => self.commit(&commit),
                Action::LookUp(id) => self.look_up(id),
                // No post is deleted here.
                Action::ProveAbsence(_) => Event::Proof(Ok(GoneProof::Nothing)),
                Action::CommitLookUp(commit) => {
                    let mut machine = self.session.machine().clone();
                    machine.looked_up(&commit.id, commit.outcome(), &commit.headers);
                    let machine = Box::new(machine);
                    Event::LookUpCommitted { machine, left: 0 }
                }
                Action::SaveMachine => Event::Saved,
            };
            let random = (self.rng.share() * 1e9) as u64;
            action = self.session.handle(event, clock(self.now_ms), random);
        }
    }

    fn look_up(&mut self, id: UpstreamId) -> Event {
        self.quota.answered(QuotaPurpose::Poll, None, self.now_ms);
        let headers = headers(self.now_ms);
        self.now_ms += ROUND_TRIP_MS;
        let found = LookUp::Found(Box::new(Post::bare(id, "1", "")));
        Event::LookedUp(Ok((found, headers)))
    }

    fn fetch(&mut self, fetch: &PageFetch) -> Event {
        self.outcome.requests += 1;
        let sent_at_ms = self.now_ms;
        self.now_ms += ROUND_TRIP_MS;
        let answer = self.server.page(&fetch.page, sent_at_ms);
        let purpose = QuotaPurpose::Poll;
        let answer = match answer {
            Ok((page, headers)) => {
                let throttle = headers.throttle.as_ref();
                self.quota.answered(purpose, throttle, self.now_ms);
                self.first_ms.get_or_insert(sent_at_ms);
                self.tally().fetched(page.len());
                let posts = page.iter().map(|&index| self.server.posts[index]);
                let listed = posts.map(|post| {
                    let id = post.upstream_id();
                    Listed {
                        position: id.clone(),
                        post: Post::bare(id, "1", ""),
                    }
                });
                Ok(Page {
                    listed: listed.collect(),
                    headers,
                    ..Page::default()
                })
            }
            Err(failure) => {
                let random = (self.rng.share() * 1e9) as u64;
                let throttle = failure.throttle.as_ref();
                self.quota
                    .refused(purpose, throttle, None, random, self.now_ms);
                Err(failure)
            }
        };
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
        let keys = reading.keys.iter();
        let posts: Vec<usize> = keys
            .map(|key| self.server.first_at(number_of(key)))
            .collect();
        let live_below = self
            .session
            .machine()
            .nothing_below(request, reading)
            .and_then(|high| self.anchor(&AnchorQuery::below(high))?.below(high));
        let from_ms = self.proven_ms.or(self.first_ms).unwrap_or(self.now_ms);
        let tally = &mut self.tallies[usize::from(self.proven_ms.is_some())];
        let stored = Stored {
            absent: Vec::new(),
            live_below,
            new: tally.store(&mut self.server, &posts, self.now_ms, from_ms),
            edited: 0,
        };
        let new = stored.new.iter().filter(|is_new| **is_new).count() as u64;
        let mut machine = self.session.machine().clone();
        machine.page(
            self.session.settings(),
            ABILITIES,
            request,
            reading,
            &page.headers,
            &stored,
        );
        self.record_plan(&machine);
        self.server.drop_older(self.now_ms - KEPT_MS);
        Event::PageCommitted(Box::new(PageCommitted {
            machine,
            new,
            missing: 0,
            rechecks_ms: vec![None; posts.len()],
        }))
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tallies[usize::from(self.proven_ms.is_some())]
    }

    fn record_plan(&mut self, machine: &Machine) {
        let Some(choice) = machine.choice() else {
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
            self.server.proven_ms = Some(at_ms);
        }
    }

    /// Ends the posts, and runs until the existing ones are old enough.
    fn finish(mut self) -> PollerOutcome {
        let ended_ms = self.now_ms;
        self.server.end(ended_ms);
        // The settling afterwards is not part of the plan's cost.
        let fetches = self.tallies.each_ref().map(Tally::fetches);
        let end_ms = ended_ms + settling_ms(self.settings);
        while self.now_ms < end_ms {
            self.step(end_ms);
        }
        let first_ms = self.first_ms.unwrap_or(ended_ms);
        let ages = self.settings.rungs.iter().map(|rung| rung.age_ms);
        let last_ms = ages.max().unwrap_or(0);
        let server = &self.server;
        let missed = server.missed().filter(|post| {
            let came_in_time = post.visible_at_ms - post.id_ms() <= last_ms;
            post.id_ms() >= first_ms && came_in_time
        });
        let missed: Vec<Key> = missed.map(key_of).collect();
        let gaps = self.session.machine().ledger().gaps();
        let is_listed = |key: &&Key| {
            let index = gaps.partition_point(|gap| gap.high <= **key);
            gaps.get(index).is_some_and(|gap| gap.low <= **key)
        };
        let mut outcome = self.outcome;
        outcome.listed = missed.iter().filter(is_listed).count() as u64;
        outcome.missed = missed.len() as u64;
        outcome.posts = server.gone + server.posts.len() as u64;
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
        let server = &self.server;
        let (range, skip) = match query {
            AnchorQuery::Newest { at_most, skip } => {
                (0..server.first_above(number_of(at_most)), *skip)
            }
            AnchorQuery::Oldest { at_least, skip } => (
                server.first_at(number_of(at_least))..server.posts.len(),
                *skip,
            ),
            AnchorQuery::Drawn {
                low,
                high,
                per_million,
            } => {
                let (from, to) = (
                    server.first_at(number_of(low)),
                    server.first_at(number_of(high)),
                );
                let part = (to - from) as u64 * u64::from(*per_million) / 1_000_000;
                (from + part as usize..to, 0)
            }
        };
        let stored = server.posts.range(range).filter(|post| post.is_stored);
        let stored = stored.map(key_of);
        if matches!(query, AnchorQuery::Newest { .. }) {
            Anchor::first(stored.rev().skip(skip as usize))
        } else {
            Anchor::first(stored.skip(skip as usize))
        }
    }
}

fn clock(now_ms: i64) -> ClockReading {
    ClockReading {
        wall_ms: now_ms,
        steady_ms: now_ms,
    }
}

fn number_of(key: &Key) -> u64 {
    SCHEME.id(key).as_str().parse().unwrap_or(0)
}

fn key_of(post: &WorkloadPost) -> Key {
    SCHEME
        .key(&post.upstream_id())
        .unwrap_or_else(|_| Key::lowest())
}

const SCHEME: IdScheme = IdScheme::MASTODON;
const ABILITIES: Abilities = Abilities {
    page_limit: PAGE as u16,
    min_id: true,
};
/// Older posts are not read. A gap that a throttle keeps open may be days old.
const KEPT_MS: i64 = 240 * 3_600_000;
