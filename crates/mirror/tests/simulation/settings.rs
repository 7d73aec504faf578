//! What a run is made of, drawn from its seed: the source's settings, the
//! world that it reads, and what goes wrong.

use driftline_core::{
    answer::Abilities,
    timeline::{Backfill, Overlap, Rung, Settings},
    upstream_id::IdOrder,
};
use driftline_sim::{
    Bursts, DatedTomorrow, FaultKind, FaultsConfig, IdLayout, Lateness, SpanMs, WorldConfig,
    quirks::Quirk,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::answers::Access;
use crate::faults::{Begins, Fault, Faults, OUTAGES_MS, Operation, Outage};

pub(crate) const SECOND_MS: i64 = 1_000;
pub(crate) const MINUTE_MS: i64 = 60 * SECOND_MS;

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) seed: u64,
    pub(crate) world: WorldConfig,
    /// Of the world.
    pub(crate) quirks: Vec<Quirk>,
    pub(crate) access: Access,
    pub(crate) settings: Settings,
    pub(crate) abilities: Abilities,
    /// How long the world has published before the source is added, ms.
    pub(crate) joins_after_ms: i64,
    /// How long it publishes from then on, ms.
    pub(crate) runs_for_ms: i64,
    pub(crate) streams: bool,
    /// Whether polls are rarer while the stream is open.
    pub(crate) cadence: bool,
    pub(crate) refreshes: bool,
    pub(crate) keep_deleted: bool,
    pub(crate) faults: Faults,
    /// When the process's wall clock is set, Unix ms, and by how much, ms.
    pub(crate) clock_steps: Vec<(i64, i64)>,
}

impl Drawn {
    /// What a seed stands for. Everything that a run can vary is drawn here.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(3);
        let every_ms = *pick(&mut rng, &[1_000, 3_000, 10_000, 20_000, 60_000]);
        let runs_for_ms = (every_ms * 60).clamp(4 * MINUTE_MS, 40 * MINUTE_MS);
        let joins_after_ms = match rng.random_range(0..4) {
            0 => 0,
            _ => rng.random_range(MINUTE_MS..40 * MINUTE_MS),
        };
        let page_limit = *pick(&mut rng, &[4, 7, 20, 40]);
        let posts = rng.random_range(20.0..250.0);
        let span_s = (joins_after_ms + runs_for_ms) as f64 / 1000.0;
        let world = world(&mut rng, posts / span_s, page_limit, joins_after_ms);
        let settings = Settings {
            // Its first IDs look like numbers.
            id_order: (world.layout == IdLayout::Sequential).then_some(IdOrder::LengthThenText),
            ..settings(&mut rng, every_ms, joins_after_ms)
        };
        let world = WorldConfig {
            publish_for_ms: Some(joins_after_ms + runs_for_ms),
            ..world
        };
        let start_ms = world.start_ms + joins_after_ms;
        let outages = (0..rng.random_range(0..4)).map(|_| Outage {
            fault: *pick(&mut rng, &Fault::ALL),
            begins: if rng.random() {
                Begins::At(start_ms + rng.random_range(0..runs_for_ms))
            } else {
                let operation = *pick(&mut rng, &Operation::ALL);
                Begins::With(operation, rng.random_range(1..20))
            },
            for_ms: *pick(&mut rng, &OUTAGES_MS),
        });
        let outages = outages.collect();
        Self {
            seed,
            quirks: Vec::new(),
            access: Access {
                token: "t",
                reads: false,
            },
            abilities: Abilities {
                page_limit,
                min_id: rng.random_bool(0.7),
            },
            joins_after_ms,
            runs_for_ms,
            streams: rng.random(),
            cadence: true,
            refreshes: rng.random(),
            keep_deleted: rng.random(),
            faults: Faults {
                outages,
                death_share: *pick(&mut rng, &[0.0, 0.005, 0.05]),
                death: None,
            },
            world,
            settings,
            clock_steps: Vec::new(),
        }
    }

    /// A run of a few minutes and some sixty commits with everything in it,
    /// for what is tried at each of its commits or operations in turn.
    pub(crate) fn short(seed: u64) -> Self {
        let drawn = Self::of(seed);
        let publish_for_ms = 5 * MINUTE_MS;
        Self {
            world: WorldConfig {
                publish_for_ms: Some(publish_for_ms),
                rate_per_s: 0.4,
                federated_share: 0.05,
                federated_backdate_ms: SpanMs::new(5_000, 60_000),
                deleted_share: 0.2,
                deleted_after_ms: SpanMs::new(0, MINUTE_MS),
                edited_share: 0.15,
                edited_after_ms: SpanMs::new(0, MINUTE_MS),
                page_limit: 7,
                faults: FaultsConfig {
                    shares: [(FaultKind::Unavailable, 0.05), (FaultKind::Cut, 0.05)].into(),
                    ..FaultsConfig::default()
                },
                ..WorldConfig::measured(0.4)
            },
            settings: Settings {
                every_ms: 10 * SECOND_MS,
                backfill: Backfill::Count(15),
                second_look_ms: 10 * SECOND_MS,
                rungs: vec![Rung {
                    age_ms: 100 * SECOND_MS,
                    period_ms: 50 * SECOND_MS,
                }],
                rung_share_percent: 100,
                ..Settings::default()
            },
            abilities: Abilities {
                page_limit: 7,
                min_id: true,
            },
            joins_after_ms: 3 * MINUTE_MS,
            runs_for_ms: 2 * MINUTE_MS,
            streams: true,
            refreshes: true,
            faults: Faults::default(),
            ..drawn
        }
    }

    /// The same, with a wall clock that is set every few minutes, both ways, and mostly back again. The upstream
    /// sends `Date`: without it, ages are counted by the wall clock, which has to be right (docs/timeline.md).
    pub(crate) fn with_clock_steps(self) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(5);
        let mut at_ms = self.start_ms();
        let mut clock_steps = Vec::new();
        while at_ms < self.start_ms() + self.runs_for_ms {
            at_ms += rng.random_range(SECOND_MS..6 * MINUTE_MS);
            let sizes_ms = [20 * MINUTE_MS, 120 * MINUTE_MS, 2 * 24 * 60 * MINUTE_MS];
            let by_ms = *pick(&mut rng, &sizes_ms) * *pick(&mut rng, &[-1, 1]);
            clock_steps.push((at_ms, by_ms));
            if rng.random_bool(0.8) {
                at_ms += rng.random_range(SECOND_MS..MINUTE_MS);
                clock_steps.push((at_ms, -by_ms));
            }
        }
        let mut world = self.world;
        world.faults.date_header = true;
        Self {
            clock_steps,
            world,
            // The simulated refresher's clock is not the session's.
            refreshes: false,
            ..self
        }
    }

    /// Whether the upstream shows no more than some pages.
    pub(crate) fn is_shallow(&self) -> bool {
        self.world.reach.is_some_and(|reach| reach < DEEP)
    }

    /// When the source is added, Unix ms.
    pub(crate) fn start_ms(&self) -> i64 {
        self.world.start_ms + self.joins_after_ms
    }

    /// The age of the last rung, ms.
    pub(crate) fn last_age_ms(&self) -> i64 {
        let ages = self.settings.rungs.iter().map(|rung| rung.age_ms);
        ages.max().unwrap_or(self.settings.second_look_ms)
    }
}

fn settings(rng: &mut ChaCha8Rng, every_ms: i64, joins_after_ms: i64) -> Settings {
    let rung = |age_ms, period_ms| Rung { age_ms, period_ms };
    let rungs = match rng.random_range(0..3) {
        0 => vec![
            rung(2 * MINUTE_MS, MINUTE_MS),
            rung(7 * MINUTE_MS, 2 * MINUTE_MS),
        ],
        1 => vec![rung(10 * MINUTE_MS, 5 * MINUTE_MS)],
        _ => vec![
            rung(6 * MINUTE_MS, 3 * MINUTE_MS),
            rung(30 * MINUTE_MS, 10 * MINUTE_MS),
        ],
    };
    let patient = rng.random_bool(0.75);
    Settings {
        every_ms,
        streamed_every_ms: every_ms * *pick(rng, &[1, 5]),
        spacing_ms: *pick(rng, &[50, 200, 1_000]),
        overlap: match rng.random_range(0..3) {
            0 => Overlap::Fixed(*pick(rng, &[0, 500, 5_000, 20_000])),
            _ => Overlap::Adaptive,
        },
        backfill: match rng.random_range(0..4) {
            0 => Backfill::None,
            1 => Backfill::Count(rng.random_range(1..200)),
            2 => Backfill::Duration(rng.random_range(SECOND_MS..joins_after_ms + MINUTE_MS)),
            _ => Backfill::All,
        },
        second_look_ms: *pick(rng, &[5_000, 15_000, 40_000]),
        second_look_period_ms: *pick(rng, &[1_000, 5_000]),
        rungs,
        // A rung that passes over ranges may miss what only it would find.
        rung_share_percent: if patient { 100 } else { 25 },
        fetches_percent: rng.random_range(100..=1_000),
        fill_gaps: rng.random_bool(0.9),
        ..Settings::default()
    }
}

fn world(
    rng: &mut ChaCha8Rng,
    rate_per_s: f64,
    page_limit: u16,
    joins_after_ms: i64,
) -> WorldConfig {
    let hard = WorldConfig::hard(rate_per_s);
    let layout = match rng.random_range(0..8) {
        0 => IdLayout::Twitter,
        1 => IdLayout::Takahe,
        2 => IdLayout::Ulid,
        3 => IdLayout::Sequential,
        _ => IdLayout::Mastodon,
    };
    let hard_faults = FaultsConfig::hard();
    let faults = match rng.random_range(0..3) {
        0 => FaultsConfig::default(),
        1 => FaultsConfig {
            date_header: rng.random(),
            throttles: Vec::new(),
            ..hard_faults
        },
        _ => hard_faults,
    };
    // For some seconds or a minute every page is empty, as while a feed is made again.
    let empties = (0..*pick(rng, &[0, 1, 5])).map(|_| driftline_sim::Outage {
        after_ms: joins_after_ms + rng.random_range(0..20 * MINUTE_MS),
        for_ms: *pick(rng, &[2_000, 10_000, MINUTE_MS]),
        fault: FaultKind::EmptyPage,
    });
    let faults = FaultsConfig {
        outages: empties.collect(),
        ..faults
    };
    let is_shallow = rng.random_bool(0.15);
    let share = |rng: &mut ChaCha8Rng, most: f64| *pick(rng, &[0.0, most / 3.0, most]);
    WorldConfig {
        layout,
        page_limit,
        lateness: *pick(
            rng,
            &[Lateness::PUNCTUAL, Lateness::default(), hard.lateness],
        ),
        worker_offset_max_ms: *pick(rng, &[0, 40, 250]),
        federated_share: share(rng, 0.1),
        federated_backdate_ms: SpanMs::new(5_000, 300_000),
        bursts: rng.random_bool(0.3).then(|| Bursts {
            every_ms: 5 * MINUTE_MS,
            posts: u32::from(page_limit) * 3 / 2,
            span_ms: 900,
        }),
        deleted_share: share(rng, 0.1),
        edited_share: share(rng, 0.1),
        // Where IDs cannot be counted, nothing leads past a page that is hidden as a whole.
        filtered_share: match page_limit {
            ..10 if layout == IdLayout::Sequential => 0.0,
            _ => share(rng, 0.2),
        },
        ignores_min_id: rng.random_bool(0.2),
        hidden_share: share(rng, 0.05),
        hidden_after_ms: SpanMs::new(0, 2 * MINUTE_MS),
        // More than is ever published, or some pages.
        reach: Some(if is_shallow {
            u32::from(page_limit) * 3
        } else {
            DEEP
        }),
        dated_tomorrow: rng.random_bool(0.3).then_some(DatedTomorrow {
            after_ms: MINUTE_MS,
            ahead_ms: 24 * 60 * MINUTE_MS,
        }),
        faults,
        ..hard
    }
}

fn pick<'a, T>(rng: &mut ChaCha8Rng, from: &'a [T]) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

/// So many posts are never published.
const DEEP: u32 = 800;
