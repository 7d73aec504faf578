//! The machine, the store and the simulated upstream under virtual time, with
//! a crash before and after any commit, and with a stream beside the polls
//! that loses, repeats and delays what it tells.
//!
//! `DRIFTLINE_SEED=n` replays one seed, `DRIFTLINE_SEEDS=n` runs that many.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap, HashSet};

use driftline_core::{
    answer::{Abilities, AnswerFacts, Event},
    refresh::Policy,
    timeline::{Backfill, Gap, GapKind, Machine, Reading, Rung, Settings, Step},
    upstream_id::UpstreamId,
};
use driftline_sim::{Happening, Upstream, WorldConfig, seeds};
use driftline_store::{
    Arrived, CommitEvents, CommitLookUp, CommitMachine, CommitPage, Prints, SourceId, Store,
    StoreError, Summary, Target, Tx, clock, commit_events, commit_look_up, commit_machine,
    commit_page, entry, export, machine, source,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const HOUR_MS: i64 = 3_600_000;
const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    just_above: true,
};

#[test]
fn the_copy_equals_the_truth_whatever_crashes() {
    seeds::run(200, |seed| Simulation::new(seed).run());
}

/// To the machine a post is there once a page has shown it: a stream beside
/// the polls changes nothing of what it knows, asks for or claims.
#[test]
fn the_machine_does_not_see_what_a_stream_shows() {
    let mut stored = 0;
    for seed in 0..16 {
        let world = WorldConfig {
            publish_for_ms: Some(HOUR_MS),
            federated_share: 0.05,
            federated_backdate_ms: driftline_sim::SpanMs::new(5_000, 300_000),
            ..WorldConfig::measured(0.05)
        };
        let run = |feed: Option<Feed>| {
            let mut simulation = Simulation::of(seed, world.clone(), 0.0);
            simulation.feed = feed;
            let end_ms = simulation.now_ms + HOUR_MS + 60_000;
            while simulation.now_ms < end_ms {
                simulation.step(false);
            }
            simulation.store.close_blocking();
            simulation
        };
        let start_ms = world.start_ms;
        let alone = run(None);
        let streamed = run(Some(Feed::new(seed, start_ms)));
        stored += streamed.streamed.new;
        assert_eq!(streamed.machine, alone.machine, "seed {seed}");
    }
    assert!(stored > 200, "{stored} came first by stream");
}

/// A stream: what happens at the upstream, some of it lost, some told twice,
/// each event with a delay of its own.
struct Feed {
    lost_share: f64,
    repeated_share: f64,
    longest_delay_ms: i64,
    told_until_ms: i64,
    /// By the time when it arrives.
    pending: BTreeMap<(i64, u64), Event>,
    number: u64,
    rng: ChaCha8Rng,
}

impl Feed {
    fn new(seed: u64, now_ms: i64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        Self {
            lost_share: rng.random_range(0.0..0.9),
            repeated_share: rng.random_range(0.0..0.3),
            longest_delay_ms: [0, 2_000, 30_000, 900_000][rng.random_range(0..4)],
            told_until_ms: now_ms,
            pending: BTreeMap::new(),
            number: 0,
            rng,
        }
    }

    /// What arrives up to a time, in batches.
    fn arrive(&mut self, upstream: &mut Upstream, now_ms: i64) -> Vec<Vec<Arrived>> {
        for happened in upstream.world().events(self.told_until_ms, now_ms) {
            let event = match happened.happening {
                Happening::Appeared(status) => Event::Posted(Box::new(status.to_post())),
                Happening::Edited(status) => Event::Edited(Box::new(status.to_post())),
                Happening::Deleted(id) => Event::Deleted(id),
            };
            if self.rng.random_bool(self.lost_share) {
                continue;
            }
            for _ in 0..1 + u32::from(self.rng.random_bool(self.repeated_share)) {
                let due_ms = happened.at_ms + self.rng.random_range(0..=self.longest_delay_ms);
                self.number += 1;
                self.pending.insert((due_ms, self.number), event.clone());
            }
        }
        self.told_until_ms = self.told_until_ms.max(now_ms);
        let later = self.pending.split_off(&(now_ms + 1, 0));
        let due = std::mem::replace(&mut self.pending, later);
        let arrived: Vec<Arrived> = due
            .into_iter()
            .map(|((received_at_ms, _), event)| Arrived {
                event,
                received_at_ms,
            })
            .collect();
        let size = self.rng.random_range(1..6);
        arrived.chunks(size).map(<[_]>::to_vec).collect()
    }

    /// The connection broke: what was on its way is gone.
    fn break_off(&mut self, now_ms: i64) {
        self.pending.clear();
        self.told_until_ms = now_ms;
    }
}

struct Simulation {
    upstream: Upstream,
    /// `None` without a stream.
    feed: Option<Feed>,
    /// What the stream's commits changed.
    streamed: Summary,
    settings: Settings,
    store: Store,
    source: SourceId,
    machine: Machine,
    now_ms: i64,
    crash_share: f64,
    waits_in_a_row: u32,
    rng: ChaCha8Rng,
    target: Target,
    _folder: tempfile::TempDir,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let config = WorldConfig {
            publish_for_ms: Some(2 * HOUR_MS),
            // So that two hours stay within the upstream's depth.
            rate_per_s: rng.random_range(0.005..0.06),
            bursts: None,
            ..WorldConfig::hard(1.0)
        };
        let crash_share = rng.random_range(0.0..0.05);
        let now_ms = config.start_ms;
        let simulation = Self::of(seed, config, crash_share);
        Self {
            // Three in four have a stream.
            feed: (!seed.is_multiple_of(4)).then(|| Feed::new(seed, now_ms)),
            ..simulation
        }
    }

    fn of(seed: u64, config: WorldConfig, crash_share: f64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(2);
        let now_ms = config.start_ms;
        let rung = |age_ms, period_ms| Rung { age_ms, period_ms };
        let settings = Settings {
            every_ms: rng.random_range(15_000..60_000),
            backfill: Backfill::All,
            rungs: vec![rung(600_000, 300_000), rung(HOUR_MS, HOUR_MS / 4)],
            // A rung that the quota skips may miss what only it would find.
            rung_share_percent: 100,
            ..Settings::default()
        };
        let folder = folder();
        let target = Target::Sqlite {
            path: folder.path().join("driftline.db"),
        };
        let store = Store::open(target.clone()).unwrap();
        let new = source::NewSource {
            name: "sim".into(),
            origin: "http://sim".into(),
            api: driftline_core::api::Api::Mastodon,
            timeline: "home".into(),
            upstream: "http://sim".into(),
            settings: settings.clone(),
            token: None,
        };
        let source = store
            .write_blocking(clock::root(), move |tx| source::add(tx, &new, now_ms))
            .unwrap()
            .unwrap();
        Self {
            upstream: Upstream::new(config, seed),
            feed: None,
            streamed: Summary::default(),
            settings,
            store,
            source,
            machine: Machine::default(),
            now_ms,
            crash_share,
            waits_in_a_row: 0,
            rng,
            target,
            _folder: folder,
        }
    }

    fn run(mut self) {
        let end_ms = self.now_ms + 2 * HOUR_MS + 60_000;
        while self.now_ms < end_ms {
            self.step(false);
        }
        let (before_ms, deadline_ms) = (self.now_ms + 60_000, self.now_ms + 24 * HOUR_MS);
        while !self.machine.is_settled(&self.settings, before_ms, 3) {
            let ledger = self.machine.ledger();
            assert!(self.now_ms < deadline_ms, "does not settle: {ledger:?}");
            self.step(true);
        }
        self.check();
        self.store.close_blocking();
    }

    fn check(&mut self) {
        let ledger = self.machine.ledger();
        let unrecoverable = |gap: &&Gap| gap.kind == GapKind::Unrecoverable;
        let lost = ledger.gaps().iter().find(unrecoverable);
        assert!(lost.is_none(), "given up: {lost:?}");
        let source = self.source;
        let rows = self
            .store
            .read_blocking(move |tx| export::rows(tx, source, 0, 1_000_000))
            .unwrap();
        let stored: HashSet<UpstreamId> = rows
            .iter()
            .map(|row| UpstreamId::new(row.post.upstream_id.as_str()))
            .collect();
        assert_eq!(stored.len(), rows.len(), "a post is stored twice");
        assert!(
            rows.windows(2)
                .all(|pair| pair[0].first_usn < pair[1].first_usn)
        );
        let truth = self.upstream.truth(self.now_ms);
        // A deleted post may have gone while nobody could look.
        let missing = truth.missing_from(&stored, i64::MAX);
        assert!(
            missing.is_empty(),
            "{} missing: {missing:?} of {ledger:?}",
            missing.len()
        );
        let by_id: HashMap<_, _> = truth
            .posts
            .iter()
            .map(|post| (post.id.as_str(), post))
            .collect();
        for row in &rows {
            let post = by_id[row.post.upstream_id.as_str()];
            if row.post.deleted_at_ms.is_some() {
                assert!(post.deleted_at_ms.is_some(), "{post:?} is not deleted");
            }
        }
    }

    /// Stores what the stream has told by now. As in the server, that never
    /// touches the machine.
    fn follow(&mut self) {
        let Some(mut feed) = self.feed.take() else {
            return;
        };
        let batches = match self.machine.scheme().copied() {
            Some(scheme) => {
                let batches = feed.arrive(&mut self.upstream, self.now_ms);
                batches.into_iter().map(|batch| (batch, scheme)).collect()
            }
            None => {
                feed.break_off(self.now_ms);
                Vec::new()
            }
        };
        let mut broken = false;
        for (events, scheme) in batches {
            let dies_before = self.crash_share > 0.0 && self.rng.random_bool(self.crash_share);
            let (source, now_ms) = (self.source, events[0].received_at_ms);
            let outcome = self.store.write_blocking(source::root(source), move |tx| {
                let commit = CommitEvents {
                    source,
                    fence: None,
                    scheme: &scheme,
                    events: &events,
                    policy: &Policy::default(),
                    keep_deleted: true,
                    now_ms,
                };
                let summary = commit_events(tx, &commit)?;
                if dies_before {
                    Err(StoreError::LeaseLost)
                } else {
                    Ok(summary)
                }
            });
            match outcome {
                Ok(summary) => {
                    self.streamed.new += summary.new;
                    self.streamed.edited += summary.edited;
                    self.streamed.deleted += summary.deleted;
                    assert_eq!(summary.revived, 0);
                }
                Err(StoreError::LeaseLost) if dies_before => {
                    broken = true;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        if broken {
            self.restart();
            feed.break_off(self.now_ms);
        }
        self.feed = Some(feed);
    }

    fn step(&mut self, settling: bool) {
        self.follow();
        let step = self
            .machine
            .next(&self.settings, ABILITIES, self.now_ms, settling);
        self.machine.sent(&step, self.now_ms);
        match step {
            Step::Wait { until_ms } => {
                assert!(until_ms > self.now_ms);
                self.now_ms = until_ms;
                self.waits_in_a_row += 1;
                assert!(self.waits_in_a_row < 10, "waits without end: a busy loop");
                return;
            }
            Step::LookUp(id) => self.look_up(&id),
            Step::Fetch(fetch) => {
                let source = self.source;
                let anchor = fetch.anchor_query().cloned().and_then(|query| {
                    self.store
                        .read_blocking(move |tx| entry::anchor(tx, source, &query))
                        .unwrap()
                });
                let request = fetch.request(self.machine.scheme(), anchor.as_ref());
                let answer = self.upstream.answer(self.now_ms, "t", &request.page);
                self.now_ms = self.upstream.received_at_ms();
                // Between the answer and its commit.
                self.follow_during_a_request();
                let known = self.machine.scheme().copied();
                let checked = answer.and_then(|page| {
                    Reading::check(&page, &request, known, &self.settings)
                        .map(|reading| (page, reading))
                });
                match checked {
                    Ok((page, reading)) => {
                        let (before, settings, now_ms) =
                            (self.machine.clone(), self.settings.clone(), self.now_ms);
                        self.commit(move |tx| {
                            let commit = CommitPage {
                                source,
                                fence: None,
                                machine: &before,
                                settings: &settings,
                                abilities: ABILITIES,
                                request: &request,
                                reading: &reading,
                                page: &page,
                                prints: &Prints::of(&page),
                                policy: &Policy::default(),
                                claims: &driftline_store::refresh::Claims::default(),
                                now_ms,
                            };
                            Ok(commit_page(tx, &commit)?.0)
                        });
                    }
                    Err(failure) => {
                        let (purpose, chance) = (Some(&request.purpose), self.rng.random());
                        self.machine
                            .failed(&self.settings, purpose, &failure, self.now_ms, chance);
                        self.keep_machine();
                    }
                }
            }
        }
        self.waits_in_a_row = 0;
    }

    /// A crash would lose the answer in hand, so none happens here.
    fn follow_during_a_request(&mut self) {
        if self.rng.random() {
            let crash_share = std::mem::take(&mut self.crash_share);
            self.follow();
            self.crash_share = crash_share;
        }
    }

    fn look_up(&mut self, id: &UpstreamId) {
        let sent_at_ms = self.now_ms;
        let answer = self.upstream.look_up(sent_at_ms, "t", id);
        self.now_ms = self.upstream.received_at_ms();
        match answer {
            Ok(look_up) => {
                let facts = AnswerFacts {
                    sent_at_ms,
                    received_at_ms: self.now_ms,
                    round_trip_ms: self.now_ms - sent_at_ms,
                    ..AnswerFacts::default()
                };
                let (source, id, before, now_ms) =
                    (self.source, id.clone(), self.machine.clone(), self.now_ms);
                self.commit(move |tx| {
                    let commit = CommitLookUp {
                        source,
                        fence: None,
                        machine: &before,
                        id: &id,
                        look_up: &look_up,
                        facts: &facts,
                        policy: &Policy::default(),
                        keep_deleted: true,
                        now_ms,
                    };
                    Ok(commit_look_up(tx, &commit)?.0)
                });
            }
            Err(failure) => {
                let chance = self.rng.random();
                self.machine
                    .failed(&self.settings, None, &failure, self.now_ms, chance);
                self.keep_machine();
            }
        }
    }

    fn keep_machine(&mut self) {
        let (source, machine, now_ms) = (self.source, self.machine.clone(), self.now_ms);
        self.commit(move |tx| {
            let commit = CommitMachine {
                source,
                fence: None,
                machine: &machine,
                now_ms,
            };
            commit_machine(tx, &commit)?;
            Ok(machine.clone())
        });
    }

    /// Commits, or dies just before or just after.
    fn commit(
        &mut self,
        mut job: impl FnMut(&mut Tx<'_>) -> Result<Machine, StoreError> + Send + 'static,
    ) {
        let dies_before = self.rng.random_bool(self.crash_share);
        let outcome = self
            .store
            .write_blocking(source::root(self.source), move |tx| {
                let machine = job(tx)?;
                // Everything is written but the commit.
                if dies_before {
                    Err(StoreError::LeaseLost)
                } else {
                    Ok(machine)
                }
            });
        match outcome {
            Ok(machine) => self.machine = machine,
            Err(StoreError::LeaseLost) if dies_before => {}
            Err(error) => panic!("{error}"),
        }
        if dies_before || self.rng.random_bool(self.crash_share) {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.now_ms += self.rng.random_range(100..120_000);
        if let Some(feed) = &mut self.feed {
            feed.break_off(self.now_ms);
        }
        self.store.close_blocking();
        self.store = Store::open(self.target.clone()).unwrap();
        let source = self.source;
        self.machine = self
            .store
            .read_blocking(move |tx| machine::load(tx, source))
            .unwrap();
    }
}

/// In memory where there is such a place: what is proven here is the order of
/// commits, not the disk.
fn folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}
