//! `plan`: what the timeline machine misses, fetches and delays once its bound is proven, next to the
//! clamp of the seed; in virtual time, so the same on every machine.

use driftline_core::timeline::{Backfill, Settings};
use driftline_sim::{
    ThrottleRule,
    baseline::Poller,
    workload::{Delays, Length, PollerOutcome, Tail, Workload, run as read, run_baseline},
};

use crate::{
    Effort,
    rounds::Spread,
    table::{Table, met},
};

/// A workload and what is asked of it.
struct Scene {
    name: String,
    workload: Workload,
    length: Length,
    /// The most fetches a post, once proven.
    fetches: Option<f64>,
    /// A share of the posts, and the most that they may take, ms.
    delay: Option<(f64, i64)>,
    /// Whether the plan is to follow a tail that begins after the proof, and to come back.
    follows_tail: bool,
}

/// Runs every workload over its seeds.
pub(crate) fn run(effort: Effort) {
    let seeds: Vec<u64> = (1..=effort.rounds(5) as u64).collect();
    let mut table = Table::new(
        format!(
            "plan: the defaults, until proven plus a day, and all came of age; {} seeds",
            seeds.len()
        ),
        "workload | poller | posts | missed | of these listed | fetches/post | before | proven, h | p50, s | p99, s | p99.9, s | target | met",
    );
    let scenes = scenes(effort.quick);
    for scene in &scenes {
        let settings = Settings {
            backfill: Backfill::None,
            refreshed: true,
            ..Settings::default()
        };
        let ours = seeds
            .iter()
            .map(|&seed| read(&scene.workload, &settings, scene.length, seed, &mut |_| ()));
        let ours: Vec<PollerOutcome> = ours.collect();
        table.row(format!(
            "{} | {}",
            scene.row("Driftline", &ours),
            scene.judged(&ours)
        ));
        let length_ms = scene.length.unproven_ms.min(DAY_MS);
        let peers = seeds.iter().map(|&seed| {
            let clamp = Poller::clamp(1_000);
            let every_ms = settings.every_ms;
            run_baseline(
                &scene.workload,
                clamp,
                every_ms,
                length_ms,
                seed,
                &mut |_| (),
            )
        });
        let peers: Vec<PollerOutcome> = peers.collect();
        table.row(format!("{} | |", scene.row("clamp, k = 1 s", &peers)));
    }
    table.print();
    first_minutes(&scenes, &seeds);
}

/// The first ten minutes of a fresh source at 20 posts/s, of which the posts count that were visible
/// within two minutes of the first poll.
fn first_minutes(scenes: &[Scene], seeds: &[u64]) {
    let mut table = Table::new(
        format!(
            "plan: the first ten minutes, posts visible in the first two; {} seeds",
            seeds.len()
        ),
        "workload | history | poll | posts | missed | p50, s | p99, s | p99.9, s | age, s | target | met",
    );
    let names = ["as measured on tweets", "2% late by 20 to 90 s"];
    let chosen = scenes.iter().filter(|scene| names.contains(&&*scene.name));
    for scene in chosen {
        for (history, backfill) in [("none", Backfill::None), ("10 min", Backfill::All)] {
            for every_ms in [1_000, 3_000] {
                let settings = Settings {
                    every_ms,
                    backfill,
                    refreshed: true,
                    ..Settings::default()
                };
                let outcomes = seeds
                    .iter()
                    .map(|&seed| scene.first_minutes(&settings, seed));
                let outcomes: Vec<PollerOutcome> = outcomes.collect();
                table.row(scene.first_row((history, &settings), &outcomes));
            }
        }
    }
    table.print();
}

impl Scene {
    fn first_minutes(&self, settings: &Settings, seed: u64) -> PollerOutcome {
        let workload = Workload {
            history_ms: 10 * MINUTE_MS,
            ..self.workload.clone()
        };
        let length = Length {
            unproven_ms: 20 * MINUTE_MS,
            proven_ms: 0,
        };
        read(&workload, settings, length, seed, &mut |_| ())
    }

    /// Posts on time and a little late are stored by the second look; those that are later than it by
    /// the first rung above.
    fn first_row(
        &self,
        (history, settings): (&str, &Settings),
        outcomes: &[PollerOutcome],
    ) -> String {
        let of = |figure: &dyn Fn(&PollerOutcome) -> f64, digits| {
            Spread::of(outcomes.iter().map(figure), digits)
        };
        let delay_ms = |o: &PollerOutcome, share: f64| {
            let delays = o.early.iter().map(|post| post.delay_ms);
            Delays::from(delays.collect::<Vec<_>>()).quantile_ms(share)
        };
        let age_ms = |o: &PollerOutcome| {
            let ages = o.early.iter().map(|post| post.late_ms + post.delay_ms);
            ages.max().unwrap_or(0)
        };
        let rung = settings.rungs.first().copied();
        let rung_ms = rung.map_or(0, |rung| rung.age_ms + rung.period_ms + AGE_SLACK_MS);
        let is_punctual = self.workload.tails.is_empty();
        let target = match is_punctual {
            true => "0 missed; p99.9 <= 25 s".to_owned(),
            false => format!(
                "0 missed; within the first rung: age <= {} s",
                rung_ms / 1000
            ),
        };
        let is_met = outcomes.iter().all(|o| {
            let is_soon = match is_punctual {
                true => delay_ms(o, 0.999) <= 25_000,
                false => age_ms(o) <= rung_ms,
            };
            o.missed == 0 && is_soon
        });
        let [p50, p99, p999] =
            [0.5, 0.99, 0.999].map(|share| of(&|o| delay_ms(o, share) as f64 / 1000.0, 1));
        format!(
            "{} | {history} | {} s | {} | {} | {p50} | {p99} | {p999} | {} | {target} | {}",
            self.name,
            settings.every_ms / 1000,
            of(&|o| o.early.len() as f64, 0),
            of(&|o| o.missed as f64, 0),
            of(&|o| age_ms(o) as f64 / 1000.0, 0),
            met(is_met)
        )
    }

    fn row(&self, poller: &str, outcomes: &[PollerOutcome]) -> String {
        let of = |figure: &dyn Fn(&PollerOutcome) -> f64, digits| {
            Spread::of(outcomes.iter().map(figure), digits)
        };
        let proven_ms: Option<Vec<i64>> = outcomes.iter().map(|o| o.proven_after_ms).collect();
        let proven = proven_ms.map_or("-".to_owned(), |all| {
            let hours = all.iter().map(|&ms| ms as f64 / HOUR_MS as f64);
            Spread::of(hours, 1).to_string()
        });
        let [p50, p99, p999] =
            [0.5, 0.99, 0.999].map(|share| of(&|o| o.delays.quantile_ms(share) as f64 / 1000.0, 1));
        format!(
            "{} | {poller} | {} | {} | {} | {} | {} | {proven} | {p50} | {p99} | {p999}",
            self.name,
            of(&|o| o.posts as f64, 0),
            of(&|o| o.missed as f64, 0),
            of(&|o| o.listed as f64, 0),
            of(&|o| o.fetches_after, 2),
            of(&|o| o.fetches_before, 2)
        )
    }

    /// The target, and whether it is met.
    fn judged(&self, outcomes: &[PollerOutcome]) -> String {
        let mut target = "0 missed, or listed".to_owned();
        let mut all_met = outcomes.iter().all(|o| o.missed == o.listed);
        if let Some(fetches) = self.fetches {
            target = format!("{target}; <= {fetches} fetches");
            all_met &= outcomes
                .iter()
                .all(|o| o.missed == 0 && o.fetches_after <= fetches);
        }
        if let Some((share, max_ms)) = self.delay {
            target = format!("{target}; p{} < {} s", share * 100.0, max_ms / 1000);
            all_met &= outcomes
                .iter()
                .all(|o| o.delays.quantile_ms(share) < max_ms);
        }
        if self.follows_tail {
            target = format!("{target}; changed within 10 min, back within 2 days");
            all_met &= outcomes.iter().all(follows_tail);
        }
        format!("{target} | {}", met(all_met))
    }
}

/// Whether a run's plan changed within ten minutes of the first post of the tail that began an hour
/// after the proof and lasted for a day, and was the one before it within two days of its end.
fn follows_tail(outcome: &PollerOutcome) -> bool {
    let Some(began_ms) = outcome.proven_after_ms.map(|ms| ms + HOUR_MS) else {
        return false;
    };
    let at = |ms: i64| outcome.plans.iter().rfind(|plan| plan.at_ms <= ms);
    let looks = |ms: i64| at(ms).map(|plan| &plan.looks_ms);
    let before = looks(began_ms);
    before.is_some()
        && looks(began_ms + 10 * MINUTE_MS) != before
        && looks(began_ms + 3 * DAY_MS) == before
}

fn scenes(quick: bool) -> Vec<Scene> {
    let days = |days: i64| Length {
        unproven_ms: if quick { HOUR_MS } else { days * DAY_MS },
        proven_ms: DAY_MS,
    };
    let scene = |name: &str, rate_per_s: f64, tails: &[Tail]| Scene {
        name: name.to_owned(),
        workload: Workload {
            tails: tails.to_vec(),
            ..Workload::tweets(rate_per_s)
        },
        length: days(6),
        fetches: None,
        delay: None,
        follows_tail: false,
    };
    let late = Tail::always(0.02, 20_000.0, 90_000.0);
    let hour = Tail {
        logarithmic: true,
        ..Tail::always(0.01, 60_000.0, 3_600_000.0)
    };
    let begins = Tail {
        begins_ms: Tail::AFTER_PROOF,
        lasts_ms: DAY_MS,
        ..Tail::always(0.01, 60_000.0, 300_000.0)
    };
    let mut scenes = vec![
        Scene {
            fetches: Some(2.5),
            delay: Some((0.999, 20_000)),
            ..scene("as measured on tweets", 20.0, &[])
        },
        Scene {
            fetches: Some(2.5),
            delay: Some((0.99, 150_000)),
            ..scene("2% late by 20 to 90 s", 20.0, &[late])
        },
        Scene {
            fetches: Some(4.0),
            ..scene("1% late by 1 to 60 min", 20.0, &[hour])
        },
        Scene {
            length: days(20),
            delay: Some((0.99, 300_000)),
            ..scene(
                "100 posts a day, 2% late by 20 to 90 s",
                100.0 / 86_400.0,
                &[late],
            )
        },
        Scene {
            length: Length {
                proven_ms: 4 * DAY_MS,
                ..days(6)
            },
            follows_tail: true,
            ..scene(
                "1% late by 1 to 5 min for a day, after the proof",
                20.0,
                &[begins],
            )
        },
    ];
    for rate_per_s in [1.0, 2.5, 5.0, 10.0, 20.0] {
        let mut throttled = scene(
            &format!("300 paged requests in 15 min, {rate_per_s} posts/s"),
            rate_per_s,
            &[],
        );
        throttled.workload.throttle = Some(ThrottleRule::paged(300, 15 * 60_000));
        throttled.length = days(1);
        scenes.push(throttled);
    }
    scenes
}

/// The server's time is known to a second and a round trip, and other requests are sent first.
const AGE_SLACK_MS: i64 = 10_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
