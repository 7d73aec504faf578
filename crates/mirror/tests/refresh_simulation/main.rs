//! The refresh pipeline under virtual time: workers that die, dawdle and lose answers, quotas that
//! are cut, posts that are edited, deleted, hidden and poisonous.
//!
//! `DRIFTLINE_SEED=n` replays one seed, `DRIFTLINE_SEEDS=n` runs that many.
#![allow(clippy::unwrap_used)]

mod due_times;
mod end;

use std::{
    collections::{HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use driftline_core::{
    answer::{Failure, FailureKind, Finding, LookUps},
    api::Api,
    quota::{Grant, RequestKind, Use, WINDOW_EDGE_MS},
    refresh::{
        AgeBand, AgeTable, BatchRule, CanaryResult, LearnedState, LookupOutcome, Next, Policy,
        RefreshPlan, Search, ValuePolicy, ValueSettings,
    },
    timeline::Settings,
    upstream_id::UpstreamId,
};
use driftline_sim::{FaultsConfig, Growth, SpanMs, ThrottleRule, Upstream, WorldConfig, seeds};
use driftline_store::{
    CredentialId, InstanceId, SourceId, Store, StoreError, Target, clock, credential, quota,
    refresh::{
        AnsweredLookup, Claim, ClaimRequest, Claimed, Claims, DuePost, LookupAnswer, LookupTarget,
        SHARDS, Save, next_due_ms,
    },
    source,
    tracked::{Found, add_lookups, hydrate},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use due_times::{BANDS, DueTimes};

#[test]
fn every_post_stays_fresh_whatever_dies() {
    seeds::run(200, |seed| Simulation::new(seed).run());
}

#[test]
fn a_mutant_with_one_interval_is_caught() {
    for every_ms in BANDS.map(|(_, every_ms)| every_ms) {
        // None of them by value, the last but one with a short quota.
        for seed in [0, 1, 2, 4] {
            let mut simulation = Simulation::new(seed);
            let (below_ms, _) = BANDS[BANDS.len() - 1];
            let one = vec![AgeBand { below_ms, every_ms }];
            let one = AgeTable::new(one, 5 * MINUTE_MS).unwrap();
            simulation.policy = Arc::new(Policy::of_ages(one));
            let ran = catch_unwind(AssertUnwindSafe(|| simulation.run()));
            let said = ran.expect_err("one interval for all ages passes");
            let said = said.downcast_ref::<String>().expect("words");
            assert!(said.contains("age band"), "seed {seed}: {said}");
        }
    }
}

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const LEASE_MS: i64 = 30 * SECOND_MS;
const WINDOW_MS: i64 = MINUTE_MS;
const RUN_MS: i64 = 50 * MINUTE_MS;
/// How long nothing goes wrong at first, and at last.
const FIRST_MS: i64 = 10 * MINUTE_MS;
const CALM_MS: i64 = 12 * MINUTE_MS;

/// How much longer than by age posts may wait by value, and how much longer such runs take.
const LONGEST: f64 = 2.0;
const MORE_CALM_MS: i64 = 20 * MINUTE_MS;

fn ages() -> AgeTable {
    let bands = BANDS.map(|(below_ms, every_ms)| AgeBand { below_ms, every_ms });
    AgeTable::new(bands.to_vec(), 5 * MINUTE_MS).unwrap()
}

/// By value, at a price that moves as if quota came and went.
fn priced(price: f64) -> Policy {
    let plan = RefreshPlan {
        ages: ages(),
        by_value: Some(ValueSettings {
            longest: LONGEST,
            ..ValueSettings::default()
        }),
        ..RefreshPlan::default()
    };
    match LearnedState::new(0).policy(&plan) {
        Policy::Value { ages, by } => Policy::Value {
            ages,
            by: ValuePolicy { price, ..by },
        },
        other => other,
    }
}

struct Simulation {
    upstream: Upstream,
    store: Store,
    claims: Claims,
    policy: Arc<Policy>,
    by_value: bool,
    run_ms: i64,
    /// How many posts were put off because the price rose.
    postponed: u64,
    source: SourceId,
    instance: InstanceId,
    credential: CredentialId,
    workers: Vec<Worker>,
    now_ms: i64,
    /// From when and until when things go wrong.
    storm_from_ms: i64,
    calm_from_ms: i64,
    /// What goes wrong then.
    storm: Storm,
    death_share: f64,
    dawdle_share: f64,
    due_times: DueTimes,
    /// Requests in a window, and whether the limit is ever cut.
    limit: u32,
    cut: bool,
    /// Posts in a request.
    batch: usize,
    throttled: u32,
    /// Requests that were taken before any answer had reported the limit.
    blind: u32,
    /// Requests that were taken and not sent, and until when they may be.
    held: (u32, i64),
    deaths: u32,
    /// Of each post the newest answer that was saved: when it was asked for, and its favourites.
    newest: HashMap<UpstreamId, (i64, Option<i64>)>,
    deleted: HashSet<UpstreamId>,
    rng: ChaCha8Rng,
    _folder: tempfile::TempDir,
}

/// Shares of what goes wrong.
struct Storm {
    death: f64,
    dawdle: f64,
    internal_error: f64,
    lost: f64,
    cut: f64,
    delay: f64,
}

struct Worker {
    /// When it acts next.
    at_ms: i64,
    failures: u32,
    shard: u64,
    /// Failures in a row, by shard.
    suspicion: [u32; SHARDS as usize],
    asking: Option<Asking>,
}

/// A batch in a worker's hands.
struct Asking {
    claim: Claim,
    search: Search<DuePost>,
    /// The canary that was asked for, if it was one.
    canary: Option<UpstreamId>,
    answers: Vec<AnsweredLookup>,
    answer: Result<LookUps, Failure>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let is_short = rng.random_bool(0.4);
        let limit = if is_short { rng.random_range(3..8) } else { 60 };
        let cut = rng.random_bool(0.3);
        let mut throttle = ThrottleRule::all(limit, WINDOW_MS);
        if cut {
            throttle = throttle.with_cut(15 * MINUTE_MS, (limit / 2).max(2));
        }
        let rate_per_s = rng.random_range(0.02..0.1);
        let mut storm = Storm {
            internal_error: rng.random_range(0.0..0.03),
            lost: rng.random_range(0.0..0.05),
            cut: rng.random_range(0.0..0.02),
            delay: rng.random_range(0.0..0.1),
            death: 0.0,
            dawdle: 0.0,
        };
        let config = WorldConfig {
            publish_for_ms: Some(20 * MINUTE_MS),
            rate_per_s,
            bursts: None,
            growth: Some(Growth {
                half_life_ms: 5 * MINUTE_MS,
                ..Growth::default()
            }),
            deleted_share: 0.1,
            deleted_after_ms: SpanMs::new(0, 40 * MINUTE_MS),
            edited_share: 0.1,
            edited_after_ms: SpanMs::new(0, 40 * MINUTE_MS),
            hidden_share: 0.05,
            hidden_after_ms: SpanMs::new(0, 40 * MINUTE_MS),
            faults: FaultsConfig {
                throttles: vec![throttle],
                delay_ms: SpanMs::new(500, 45_000),
                poison_share: if rng.random_bool(0.5) { 0.02 } else { 0.0 },
                ..FaultsConfig::default()
            },
            ..WorldConfig::punctual(1.0)
        };
        let is_poisoned = config.faults.poison_share > 0.0;
        let now_ms = config.start_ms;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driftline.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let new = source::NewSource {
            name: "tracked".to_owned(),
            origin: "https://sim.example".to_owned(),
            api: Api::Mastodon,
            timeline: source::TRACKED.to_owned(),
            upstream: "https://sim.example".to_owned(),
            settings: Settings::default(),
            token: None,
        };
        let (source, instance, credential) = store
            .write_blocking(clock::root(), move |tx| {
                let id = source::add(tx, &new, now_ms)?.unwrap();
                let instance = source::by_id(tx, id)?.unwrap().instance.id;
                let credential = credential::of_place(tx, instance, None, "none", now_ms)?;
                Ok::<_, StoreError>((id, instance, credential.id))
            })
            .unwrap();
        let workers = (0..rng.random_range(1..5)).map(|number| Worker {
            at_ms: now_ms + number,
            failures: 0,
            shard: rng.random_range(0..SHARDS as u64),
            suspicion: [0; SHARDS as usize],
            asking: None,
        });
        let workers: Vec<_> = workers.collect();
        storm.death = rng.random_range(0.0..0.08);
        storm.dawdle = rng.random_range(0.0..0.05);
        let by_value = seed % 4 == 3;
        // Both take longer to settle.
        let slow = u32::from(by_value) + 2 * u32::from(is_short);
        let more_ms = i64::from(slow) * MORE_CALM_MS;
        Self {
            upstream: Upstream::new(config, seed),
            store,
            claims: Claims::default(),
            policy: Arc::new(Policy::of_ages(ages())),
            by_value,
            run_ms: RUN_MS + more_ms,
            postponed: 0,
            source,
            instance,
            credential,
            workers,
            now_ms,
            storm_from_ms: now_ms + FIRST_MS,
            calm_from_ms: now_ms + RUN_MS - CALM_MS,
            storm,
            death_share: 0.0,
            dawdle_share: 0.0,
            due_times: DueTimes::new(!by_value, is_poisoned),
            limit,
            cut,
            // Every fifth server that is not short of requests looks them up one by one.
            batch: if seed.is_multiple_of(5) && !is_short {
                1
            } else {
                20
            },
            throttled: 0,
            blind: 0,
            held: (0, 0),
            deaths: 0,
            newest: HashMap::new(),
            deleted: HashSet::new(),
            rng,
            _folder: folder,
        }
    }

    fn run(mut self) {
        let start_ms = self.now_ms;
        let mut named = HashSet::new();
        let mut name_at_ms = start_ms;
        let (mut storms, mut calm) = (false, false);
        while self.now_ms < start_ms + self.run_ms {
            let (at, at_ms) = self
                .workers
                .iter()
                .enumerate()
                .map(|(at, worker)| (at, worker.at_ms))
                .min_by_key(|(_, at_ms)| *at_ms)
                .unwrap();
            if name_at_ms <= at_ms {
                self.now_ms = self.now_ms.max(name_at_ms);
                self.name(&mut named);
                self.check_due_times(named.len());
                name_at_ms = self.now_ms + 20 * SECOND_MS;
                continue;
            }
            self.now_ms = self.now_ms.max(at_ms);
            if !storms && self.now_ms >= self.storm_from_ms {
                storms = true;
                self.begin_storm();
            }
            if !calm && self.now_ms >= self.calm_from_ms {
                calm = true;
                self.calm_down();
            }
            self.step(at);
        }
        self.check_end(&named);
    }

    /// A producer names every post that is new.
    fn name(&mut self, named: &mut HashSet<UpstreamId>) {
        if self.by_value {
            let price = 10_f64.powf(self.rng.random_range(-4.0..3.0));
            self.policy = Arc::new(priced(price));
        }
        let truth = self.upstream.truth(self.now_ms);
        let new: Vec<String> = truth
            .posts
            .iter()
            .filter(|post| named.insert(post.id.clone()))
            .map(|post| post.id.to_string())
            .collect();
        let (source, now_ms) = (self.source, self.now_ms);
        let policy = Arc::clone(&self.policy);
        self.store
            .write_blocking(source::root(source), move |tx| {
                add_lookups(tx, source, &new, false, &policy, now_ms)
            })
            .unwrap();
    }

    fn begin_storm(&mut self) {
        let storm = &self.storm;
        (self.death_share, self.dawdle_share) = (storm.death, storm.dawdle);
        self.upstream.change_faults(|faults| {
            faults.internal_error_share = storm.internal_error;
            faults.lost_share = storm.lost;
            faults.cut_share = storm.cut;
            faults.delay_share = storm.delay;
        });
    }

    fn calm_down(&mut self) {
        self.death_share = 0.0;
        self.dawdle_share = 0.0;
        self.upstream.change_faults(|faults| {
            faults.internal_error_share = 0.0;
            faults.lost_share = 0.0;
            faults.cut_share = 0.0;
            faults.delay_share = 0.0;
        });
    }

    fn step(&mut self, at: usize) {
        let Some(asking) = self.workers[at].asking.take() else {
            return self.begin(at);
        };
        if self.rng.random_bool(self.death_share) {
            self.deaths += 1;
            self.workers[at].at_ms = self.now_ms + self.rng.random_range(0..20 * SECOND_MS);
            if self.rng.random_bool(0.3) {
                // The whole process dies, and begins again.
                self.claims = Claims::default();
                self.held = (0, 0);
                for worker in &mut self.workers {
                    worker.asking = None;
                    worker.at_ms = worker.at_ms.max(self.now_ms + SECOND_MS);
                }
            }
            return;
        }
        self.take_answer(at, asking);
    }

    /// Takes a request from the quota and a batch from the schedule, and asks.
    fn begin(&mut self, at: usize) {
        let (instance, now_ms) = (self.instance, self.now_ms);
        let first = self
            .store
            .read_blocking(move |tx| next_due_ms(tx, instance, now_ms))
            .unwrap();
        match first {
            None => return self.wait(at, now_ms + SECOND_MS),
            Some(due_ms) if due_ms > now_ms => {
                return self.wait(at, due_ms.min(now_ms + SECOND_MS));
            }
            Some(_) => {}
        }
        if let Grant::Until(until_ms) = self.take() {
            assert!(until_ms > now_ms, "a wait that is over");
            return self.wait(at, until_ms.min(now_ms + 5 * SECOND_MS));
        }
        let worker = &mut self.workers[at];
        worker.shard += 1;
        let ask = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(self.batch, 2 * SECOND_MS),
            shard: worker.shard,
            holder: format!("worker {at}"),
            lease_ms: LEASE_MS,
            now_ms,
            policy: Arc::clone(&self.policy),
        };
        match self.claims.claim_blocking(&self.store, ask).unwrap() {
            Claimed::Batch(claim) if claim.posts.is_empty() => {
                self.put_back();
                self.save(claim, Vec::new());
                self.wait(at, now_ms + 1);
            }
            Claimed::Batch(claim) => {
                self.check_disjoint(&claim);
                self.due_times.claimed(&claim, now_ms);
                let failures = |due: &DuePost| due.freshness.failures;
                let worker = &self.workers[at];
                let suspicion = worker.suspicion[shard(worker.shard)];
                let silent = worker.failures.max(suspicion);
                let asking = Asking {
                    search: Search::new(claim.posts.clone(), failures, silent),
                    canary: None,
                    claim,
                    answers: Vec::new(),
                    answer: Err(Failure::new(FailureKind::Unreachable, "not asked yet")),
                };
                self.ask(at, asking);
            }
            Claimed::Until(until_ms) => {
                self.put_back();
                self.wait(at, until_ms.min(now_ms + SECOND_MS));
            }
            Claimed::Idle => {
                self.put_back();
                self.wait(at, now_ms + SECOND_MS);
            }
        }
    }

    /// Sends what is to be asked next, and waits for the answer.
    fn ask(&mut self, at: usize, mut asking: Asking) {
        let ids: Vec<UpstreamId> = match asking.search.next() {
            Next::Posts(part) => part.iter().map(id_of).collect(),
            Next::Canary => {
                let asked: Vec<UpstreamId> = asking.claim.posts.iter().map(id_of).collect();
                let others = self.newest.iter().filter(|(id, _)| !asked.contains(id));
                let newest = others.max_by_key(|(id, (at_ms, _))| (at_ms, id.as_str()));
                asking.canary = newest.map(|(id, _)| id.clone());
                asking.canary.iter().cloned().collect()
            }
            Next::Nothing => return self.end(at, asking),
        };
        if ids.is_empty() {
            self.put_back();
            asking.search.canary_checked(CanaryResult::Unasked);
            return self.go_on(at, asking);
        }
        asking.answer = self.upstream.look_ups(self.now_ms, "token", &ids);
        let mut back_ms = self.upstream.received_at_ms();
        if self.rng.random_bool(self.dawdle_share) {
            back_ms += LEASE_MS + self.rng.random_range(0..LEASE_MS);
        }
        let worker = &mut self.workers[at];
        worker.at_ms = back_ms.max(self.now_ms + 1);
        worker.asking = Some(asking);
    }

    /// Takes the answer in.
    fn take_answer(&mut self, at: usize, mut asking: Asking) {
        let answer = std::mem::replace(
            &mut asking.answer,
            Err(Failure::new(FailureKind::Unreachable, "taken")),
        );
        let (throttle, is_throttled) = match &answer {
            Ok(found) => (found.headers.throttle, false),
            Err(failure) => (failure.throttle, failure.kind == FailureKind::Throttled),
        };
        self.throttled += u32::from(is_throttled);
        self.notify(move |ledger, now_ms| {
            if is_throttled {
                ledger.refused(RequestKind::LookUp, throttle.as_ref(), None, 0, now_ms);
            } else {
                ledger.answered(RequestKind::LookUp, throttle.as_ref(), now_ms);
            }
        });
        match (asking.canary.take(), answer) {
            (Some(_), Ok(_)) => asking.search.canary_checked(CanaryResult::Answered),
            (Some(_), Err(failure)) => asking
                .search
                .canary_checked(CanaryResult::Failed(failure.kind)),
            (None, Ok(found)) => {
                let part = asking.search.answered();
                asking.answers.extend(matched(&part, found));
            }
            (None, Err(failure)) => asking.search.failed(failure.kind),
        }
        self.go_on(at, asking);
    }

    /// Asks for more, or saves.
    fn go_on(&mut self, at: usize, mut asking: Asking) {
        let is_in_time = self.now_ms < asking.claim.until_ms - 5 * SECOND_MS;
        let may_ask = asking.search.next() != Next::Nothing
            && is_in_time
            && self.take() == Grant::Requests(1);
        if may_ask {
            return self.ask(at, asking);
        }
        if asking.search.next() == Next::Canary {
            asking.search.canary_checked(CanaryResult::Unasked);
        }
        self.end(at, asking);
    }

    fn end(&mut self, at: usize, asking: Asking) {
        let Asking {
            claim,
            search,
            mut answers,
            ..
        } = asking;
        let blame = search.end();
        for (posts, answer) in [
            (blame.failed, LookupAnswer::Nothing),
            (blame.suspects, LookupAnswer::Suspect),
            (blame.hidden, LookupAnswer::Hidden),
        ] {
            answers.extend(posts.into_iter().map(|due| AnsweredLookup {
                what: due.what,
                answer: answer.clone(),
                asked_at_ms: self.now_ms,
            }));
        }
        let is_silent = !answers.iter().any(|a| a.answer.is_usable());
        let wait_ms = self.pause_ms(at, is_silent);
        if answers.is_empty() {
            self.claims.give_back_blocking(&self.store, claim).unwrap();
            return self.wait(at, self.now_ms + wait_ms);
        }
        self.hydrate(&answers);
        // Between the two commits a process may die, too.
        if self.rng.random_bool(self.death_share / 2.0) {
            self.deaths += 1;
            return self.wait(at, self.now_ms + SECOND_MS);
        }
        self.save(claim, answers);
        self.wait(at, self.now_ms + wait_ms);
    }

    /// How long a worker waits after a turn.
    fn pause_ms(&mut self, at: usize, is_silent: bool) -> i64 {
        let worker = &mut self.workers[at];
        let suspicion = &mut worker.suspicion[shard(worker.shard)];
        if !is_silent {
            (worker.failures, *suspicion) = (0, 0);
            return 1;
        }
        worker.failures = (worker.failures + 1).min(5);
        *suspicion += 1;
        SECOND_MS << worker.failures
    }

    fn save(&mut self, claim: Claim, answers: Vec<AnsweredLookup>) {
        let ends_ms = claim.until_ms;
        let named: HashMap<LookupTarget, UpstreamId> = claim
            .posts
            .iter()
            .map(|due| (due.what, UpstreamId::from(due.upstream_id.as_str())))
            .collect();
        let by_what: HashMap<LookupTarget, AnsweredLookup> = answers
            .iter()
            .map(|answered| (answered.what, answered.clone()))
            .collect();
        let save = Save {
            claim,
            answers,
            policy: Arc::clone(&self.policy),
            keep_deleted: true,
            now_ms: self.now_ms,
            random: self.rng.random(),
        };
        match self.claims.save_blocking(&self.store, save) {
            Ok(saved) => {
                assert!(self.now_ms < ends_ms, "a late holder saved");
                self.postponed += saved.postponed;
                for (what, outcome) in saved.outcomes {
                    let id = named[&what].clone();
                    let answered = &by_what[&what];
                    match (outcome, &answered.answer) {
                        (
                            LookupOutcome::Updated | LookupOutcome::Unchanged,
                            LookupAnswer::Found(post),
                        ) => {
                            let at_ms = answered.asked_at_ms;
                            self.due_times.answered(&id, post.created_at_ms, at_ms);
                            self.answered(id, at_ms, post.counts.favourites);
                        }
                        (LookupOutcome::Superseded, _) => {}
                        (LookupOutcome::Deleted | LookupOutcome::Hidden, _) => {
                            self.due_times.forget(&id);
                            self.deleted.insert(id);
                        }
                        _ => self.due_times.forget(&id),
                    }
                }
            }
            // Its process died meanwhile, or its time was over.
            Err(StoreError::LeaseLost) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn answered(&mut self, id: UpstreamId, asked_ms: i64, favourites: Option<i64>) {
        if let Some((before_ms, _)) = self.newest.get(&id) {
            assert!(*before_ms <= asked_ms, "an older answer won: {id}");
        }
        self.newest.insert(id, (asked_ms, favourites));
    }

    /// Stores the found posts of pending look-ups, in a commit of its own.
    fn hydrate(&mut self, answers: &[AnsweredLookup]) {
        let posts: Vec<_> = answers
            .iter()
            .filter_map(|answered| match (answered.what, &answered.answer) {
                (LookupTarget::Pending { lookup_id, .. }, LookupAnswer::Found(post)) => {
                    Some((lookup_id, post.clone(), answered.asked_at_ms))
                }
                _ => None,
            })
            .collect();
        if posts.is_empty() {
            return;
        }
        for (_, post, asked_ms) in &posts {
            let known = self.newest.get(&post.id);
            if known.is_none() {
                // Another worker may have stored it, when this one's claim had ended.
                self.due_times
                    .answered(&post.id, post.created_at_ms, *asked_ms);
            }
            if known.is_none_or(|(before_ms, _)| before_ms <= asked_ms) {
                let newest = (*asked_ms, post.counts.favourites);
                self.newest.entry(post.id.clone()).or_insert(newest);
            }
        }
        let (source, policy, now_ms) = (self.source, Arc::clone(&self.policy), self.now_ms);
        self.store
            .write_blocking(source::root(source), move |tx| {
                let found: Vec<Found<'_>> = posts
                    .iter()
                    .map(|(lookup_id, post, asked_at_ms)| Found {
                        lookup_id: *lookup_id,
                        post,
                        asked_at_ms: *asked_at_ms,
                    })
                    .collect();
                hydrate(tx, source, &found, &policy, now_ms)
            })
            .unwrap();
    }

    /// Keeps a request for later in its window.
    fn put_back(&mut self) {
        let ends_ms = (self.now_ms / WINDOW_MS + 1) * WINDOW_MS;
        let kept = if self.held.1 == ends_ms {
            self.held.0
        } else {
            0
        };
        self.held = (kept + 1, ends_ms);
    }

    fn take(&mut self) -> Grant {
        if self.held.0 > 0 && self.now_ms < self.held.1 - WINDOW_EDGE_MS {
            self.held.0 -= 1;
            return Grant::Requests(1);
        }
        let (id, now_ms, posts) = (self.credential, self.now_ms, self.batch as u32);
        let (grant, is_blind) = self
            .store
            .write_blocking(credential::root(id), move |tx| {
                let mut ledger = quota::load(tx, id, "requests")?;
                let purpose = Use::Refresh {
                    left_to_polling: 0.2,
                };
                let grant = ledger.take(1, posts, purpose, now_ms);
                quota::store(tx, id, "requests", &ledger)?;
                Ok::<_, StoreError>((grant, ledger.windows().is_empty()))
            })
            .unwrap();
        self.blind += u32::from(is_blind);
        grant
    }

    fn notify(
        &mut self,
        mut change: impl FnMut(&mut driftline_core::quota::QuotaLedger, i64) + Send + 'static,
    ) {
        let (id, now_ms) = (self.credential, self.now_ms);
        self.store
            .write_blocking(credential::root(id), move |tx| {
                let mut ledger = quota::load(tx, id, "requests")?;
                change(&mut ledger, now_ms);
                quota::store(tx, id, "requests", &ledger)
            })
            .unwrap();
    }

    fn wait(&mut self, at: usize, until_ms: i64) {
        self.workers[at].at_ms = until_ms.max(self.now_ms + 1);
    }

    /// No post is in two claims that have not ended.
    fn check_disjoint(&self, claim: &Claim) {
        for worker in &self.workers {
            let Some(asking) = &worker.asking else {
                continue;
            };
            if asking.claim.until_ms <= self.now_ms {
                continue;
            }
            for due in &asking.claim.posts {
                let twice = claim.posts.iter().any(|other| other.what == due.what);
                assert!(!twice, "{} is held twice", due.upstream_id);
            }
        }
    }
}

fn shard(shard: u64) -> usize {
    (shard % SHARDS as u64) as usize
}

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}

fn matched(part: &[DuePost], found: LookUps) -> Vec<AnsweredLookup> {
    let asked_at_ms = found.headers.sent_at_ms;
    let mut findings: HashMap<UpstreamId, Finding> = found.findings.into_iter().collect();
    part.iter()
        .map(|due| AnsweredLookup {
            what: due.what,
            answer: match findings.remove(&id_of(due)) {
                Some(Finding::Found(post)) => LookupAnswer::Found(post),
                Some(Finding::Gone) => LookupAnswer::Gone,
                Some(Finding::Hidden) => LookupAnswer::Hidden,
                Some(Finding::Missing) | None => LookupAnswer::Missing,
            },
            asked_at_ms,
        })
        .collect()
}
