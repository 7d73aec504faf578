//! What empty and sparse timelines cost beside their polls.

use driftline_core::timeline::{Backfill, Settings};
use driftline_sim::seeds;
use rand::{RngExt, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use super::{
    harness::Harness,
    laws::{START_MS, settings},
    world::{Codec, World, WorldPost},
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const SILENT_MS: i64 = 4 * MINUTE_MS;

/// Posts some minutes or hours apart, the newest a while ago; or a server that is new, whose first posts
/// came just now and that falls silent after a few minutes. Nothing comes after [`SILENT_MS`].
fn sparse(rng: &mut ChaCha8Rng) -> World {
    let mut times_ms = Vec::new();
    if rng.random_bool(0.5) {
        let max_ms = *[HOUR_MS, 72 * HOUR_MS].choose(rng).unwrap();
        let mut time_ms = START_MS - rng.random_range(MINUTE_MS..=max_ms);
        let max_ms = *[HOUR_MS, 24 * HOUR_MS].choose(rng).unwrap();
        let apart_ms = rng.random_range(MINUTE_MS / 2..=max_ms);
        for _ in 0..rng.random_range(0..120) {
            times_ms.push(time_ms);
            time_ms -= rng.random_range(1_000..=apart_ms);
        }
        times_ms.reverse();
    } else {
        let mut time_ms = START_MS - rng.random_range(0..2 * MINUTE_MS);
        let apart_ms = rng.random_range(200..30_000);
        let end_ms = START_MS + rng.random_range(0..SILENT_MS);
        while time_ms < end_ms {
            times_ms.push(time_ms);
            time_ms += rng.random_range(1..=2 * apart_ms);
        }
    }
    let posts = times_ms.into_iter().map(|time_ms| WorldPost {
        id: (time_ms as u64) << 16,
        visible_at_ms: time_ms,
        deleted_at_ms: None,
        filtered: false,
    });
    World {
        posts: posts.collect(),
        page_limit: rng.random_range(15..=40),
        knows_min_id: rng.random_bool(0.7),
        codec: Codec::ALL[rng.random_range(0..4)],
        ..World::default()
    }
}

fn drawn(rng: &mut ChaCha8Rng) -> Settings {
    let backfills = [
        Backfill::None,
        Backfill::Count(rng.random_range(1..200)),
        Backfill::Duration(rng.random_range(MINUTE_MS..72 * HOUR_MS)),
        Backfill::Duration(24 * HOUR_MS),
        Backfill::All,
    ];
    let default = Settings::default();
    Settings {
        every_ms: rng.random_range(1_000..10_000),
        spacing_ms: rng.random_range(20..500),
        backfill: *backfills.choose(rng).unwrap(),
        second_look_ms: rng.random_range(5_000..60_000),
        second_look_period_ms: rng.random_range(1_000..10_000),
        rungs: match rng.random_bool(0.7) {
            true => default.rungs,
            false => settings().rungs,
        },
        ..default
    }
}

/// The most requests beside polls in a span of this many minutes, from a time on.
fn most_in(harness: &Harness, minutes: i64, from_ms: i64) -> usize {
    let others = &harness.others_ms;
    let within = |start_ms: &i64| {
        let end_ms = start_ms + minutes * MINUTE_MS;
        others
            .iter()
            .filter(|ms| (*start_ms..end_ms).contains(*ms))
            .count()
    };
    others
        .iter()
        .filter(|ms| **ms >= from_ms)
        .map(within)
        .max()
        .unwrap_or(0)
}

/// A range of which nothing is shown is read again in the portions of its rung, not whenever some
/// more of it has come of age.
#[test]
fn an_empty_or_sparse_history_is_few_ranges_and_few_requests() {
    seeds::run(60, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let world = sparse(&mut rng);
        let settings = drawn(&mut rng);
        let mut harness = Harness::new(world, settings.clone(), START_MS, seed);
        harness.run(START_MS + 40 * MINUTE_MS, |harness| {
            harness.assert_ledger_is_sound();
            let ranges = harness.machine().ledger().gaps().len();
            assert!(
                ranges <= 16,
                "{ranges} ranges: {:?}",
                harness.machine().ledger()
            );
        });
        assert!(harness.missed().is_empty() || settings.backfill != Backfill::All);
        let now_ms = harness.clock_ms();
        let plan = harness
            .machine()
            .plan(&settings, harness.abilities(), now_ms);
        assert_eq!(harness.machine().overdue_ms(&plan, now_ms), None);
        // By then the history itself is read.
        let most = most_in(&harness, 1, START_MS + SILENT_MS + MINUTE_MS);
        assert!(most <= 12, "{most} a minute: {settings:?}");
    });
}

/// After an hour of nothing, what is left to be read again costs less than a request a minute.
#[test]
fn a_source_without_news_costs_at_most_a_request_a_minute_beside_its_polls() {
    seeds::run(40, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let world = sparse(&mut rng);
        let settings = drawn(&mut rng);
        let mut harness = Harness::new(world, settings.clone(), START_MS, seed);
        let quiet_ms = START_MS + HOUR_MS;
        harness.run(quiet_ms + 2 * HOUR_MS, Harness::assert_ledger_is_sound);
        let most = most_in(&harness, 10, quiet_ms);
        assert!(most <= 10, "{most} in ten minutes: {settings:?}");
        let all = harness
            .others_ms
            .iter()
            .filter(|ms| **ms >= quiet_ms)
            .count();
        assert!(all <= 60, "{all} in two hours: {settings:?}");
    });
}
