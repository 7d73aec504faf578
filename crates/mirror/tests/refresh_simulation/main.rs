//! The refresh pipeline under virtual time: workers that die, dawdle and lose answers, quotas that
//! are cut, posts that are edited, deleted, hidden and poisonous.
//!
//! `DRIFTLINE_SEED=n` replays one seed, `DRIFTLINE_SEEDS=n` runs that many.
#![allow(clippy::unwrap_used)]

// It reads no pages and no streams.
#[allow(dead_code)]
#[path = "../simulation/answers.rs"]
mod answers;
mod due_times;
mod end;
#[allow(dead_code)]
#[path = "../simulation/proofs.rs"]
mod proofs;
mod quirks;
mod quota;
mod saves;
#[path = "../simulation/stored_edits.rs"]
mod stored_edits;
mod workers;

use std::{
    collections::{HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use driftline_core::{
    api::Api,
    refresh::{AgeBand, AgeTable, LearnedState, Policy, RefreshPlan, ValuePolicy, ValueSettings},
    source_kind::SourceKind,
    timeline::Settings,
    upstream_id::UpstreamId,
};
use driftline_sim::{
    FaultKind, FaultsConfig, Growth, PoisonAnswer, QuotaCut, SpanMs, ThrottleRule, Upstream,
    WorldConfig, quirks::Quirk, seeds,
};
use driftline_store::{
    CredentialKey, SourceKey, Store, StoreError, Target, credential, local_ids,
    refresh::{Claims, SHARDS},
    source,
    tracked::add_lookups,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use answers::Access;
use due_times::{BANDS, DueTimes};
use proofs::Proofs;
use workers::Worker;

#[test]
fn every_post_stays_fresh_whatever_dies() {
    seeds::run(24, |seed| Simulation::new(seed).run());
}

#[test]
fn a_mutant_with_one_interval_is_caught() {
    for every_ms in BANDS.map(|(_, every_ms)| every_ms) {
        // Neither of them by value, the second with a short quota.
        for seed in [0, 2] {
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

/// How requests for poisonous posts fail, by seed.
const POISON: [PoisonAnswer; 3] = [
    PoisonAnswer::InternalError,
    PoisonAnswer::BadRequest,
    PoisonAnswer::Silence,
];

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
    access: Access,
    proofs: Proofs,
    store: Store,
    claims: Claims,
    policy: Arc<Policy>,
    by_value: bool,
    run_ms: i64,
    /// How many posts were put off because the price rose.
    postponed: u64,
    source: SourceKey,
    credential: CredentialKey,
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

impl Simulation {
    fn new(seed: u64) -> Self {
        Self::with_quirks(seed, &[])
    }

    fn with_quirks(seed: u64, quirks: &[Quirk]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let is_short = rng.random_bool(0.4);
        let limit = if is_short { rng.random_range(3..8) } else { 60 };
        let cut = rng.random_bool(0.3);
        let mut throttle = ThrottleRule::all(limit, WINDOW_MS);
        if cut {
            throttle.cut = Some(QuotaCut {
                after_ms: 15 * MINUTE_MS,
                limit: (limit / 2).max(2),
            });
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
                poison_answer: POISON[seed as usize % POISON.len()],
                poison_share: if rng.random_bool(0.5) { 0.02 } else { 0.0 },
                ..FaultsConfig::default()
            },
            boost_share: if quirks.is_empty() { 0.0 } else { 0.3 },
            quirks: quirks::of_look_ups(quirks, seed),
            layout: quirks::layout(quirks),
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
            timeline: SourceKind::Tracked.name().to_owned(),
            kind: SourceKind::Tracked,
            upstream: "https://sim.example".to_owned(),
            settings: Settings::default(),
            token: None,
            allow_private: false,
            owner: driftline_store::Owner::Operator,
            audience: driftline_core::names::audience::Audience::Public,
        };
        let (source, credential) = store
            .write_blocking(local_ids::root(), move |tx| {
                let source = source::add(tx, &new, now_ms)?.unwrap();
                let instance = source.instance;
                let credential = credential::find_or_add(
                    tx,
                    instance,
                    (driftline_store::Owner::Operator, None),
                    "none",
                    now_ms,
                )?;
                Ok::<_, StoreError>((source, credential.key()))
            })
            .unwrap();
        let workers = (0..rng.random_range(1..5)).map(|number| Worker {
            at_ms: now_ms + number,
            failures: 0,
            shard: rng.random_range(0..SHARDS as u64),
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
            access: Access {
                token: "token",
                reads: !quirks.is_empty(),
            },
            proofs: Proofs::default(),
            store,
            claims: Claims::default(),
            policy: Arc::new(Policy::of_ages(ages())),
            by_value,
            run_ms: RUN_MS + more_ms,
            postponed: 0,
            source,
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
            .filter(|post| named.insert(post.id.stable()))
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
            faults.shares.extend([
                (FaultKind::InternalError, storm.internal_error),
                (FaultKind::Lost, storm.lost),
                (FaultKind::Cut, storm.cut),
                (FaultKind::Delay, storm.delay),
            ]);
        });
    }

    fn calm_down(&mut self) {
        self.death_share = 0.0;
        self.dawdle_share = 0.0;
        self.upstream.change_faults(|faults| faults.shares.clear());
    }
}
