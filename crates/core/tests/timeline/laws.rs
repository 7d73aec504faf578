//! Law 1 over random worlds, faults and crashes.

use driftline_core::timeline::{Backfill, Overlap, Rung, Settings};
use driftline_sim::seeds;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    harness::{Harness, Mutant},
    world::{Codec, World, WorldConfig},
};

pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// A ladder scaled down, so that its last rung is at five minutes.
pub(crate) fn settings() -> Settings {
    Settings {
        every_ms: 1_000,
        spacing_ms: 20,
        backfill: Backfill::All,
        second_look_ms: 15_000,
        second_look_period_ms: 5_000,
        rungs: vec![
            Rung {
                age_ms: 60_000,
                period_ms: 30_000,
            },
            Rung {
                age_ms: 300_000,
                period_ms: 60_000,
            },
        ],
        ..Settings::default()
    }
}

pub(crate) fn world_config(rng: &mut ChaCha8Rng) -> WorldConfig {
    WorldConfig {
        start_ms: START_MS,
        length_ms: 300_000,
        rate_per_s: rng.random_range(0.05..8.0),
        late_share: 0.05,
        // The second look at its least age sees all of these.
        late_up_to_ms: 14_000,
        deleted_share: 0.02,
        filtered_share: [0.0, 0.2, 0.4][rng.random_range(0..3)],
        burst_share: 0.01,
        page_limit: rng.random_range(15..=40),
        codec: Codec::ALL[rng.random_range(0..4)],
    }
}

/// A source over a random world, and what the world is made of once it is changed.
fn random(
    seed: u64,
    change: impl Fn(&mut WorldConfig, &mut ChaCha8Rng),
) -> (Harness, WorldConfig, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut config = world_config(&mut rng);
    change(&mut config, &mut rng);
    let world = World::random(&config, &mut rng);
    let harness = Harness::new(world, settings(), START_MS, seed);
    (harness, config, rng)
}

fn run(seed: u64, change: impl Fn(&mut Harness)) -> Harness {
    let (mut harness, config, mut rng) = random(seed, |_, _| ());
    harness.fail_share = rng.random_range(0.0..0.2);
    harness.crash_share = rng.random_range(0.0..0.1);
    harness.clock_error_ms = rng.random_range(-3_000..3_000);
    harness.settings.overlap =
        [Overlap::Adaptive, Overlap::Fixed(0), Overlap::Fixed(2_000)][rng.random_range(0..3)];
    change(&mut harness);
    let end_ms = START_MS + config.length_ms + 20_000;
    harness.run(end_ms, Harness::assert_ledger_is_sound);
    harness.settle(Harness::assert_ledger_is_sound);
    harness
}

fn assert_nothing_is_missed(harness: &Harness) {
    let (missed, ledger) = (harness.missed(), harness.machine().ledger());
    assert_eq!(missed.first(), None, "{} missed: {ledger:?}", missed.len());
}

#[test]
fn nothing_is_missed_once_the_ladder_has_run() {
    seeds::run(24, |seed| {
        let harness = run(seed, |_| ());
        assert_nothing_is_missed(&harness);
        assert_eq!((harness.open_gaps(), harness.unrecoverable()), (0, 0));
    });
}

#[test]
fn every_incomplete_range_is_in_the_ledger_at_every_moment() {
    seeds::run(10, |seed| {
        let (mut harness, ..) = random(seed, |config, _| config.length_ms = 120_000);
        harness.fail_share = 0.1;
        harness.crash_share = 0.05;
        harness.run(START_MS + 140_000, |harness| {
            harness.assert_ledger_is_sound();
            let (lost, ledger) = (harness.unaccounted(), harness.machine().ledger());
            assert!(lost.is_empty(), "unaccounted: {lost:?} of {ledger:?}");
        });
    });
}

#[test]
fn lateness_beyond_every_overlap_is_caught_by_the_ladder() {
    seeds::run(8, |seed| {
        let (mut harness, config, _) = random(seed, |config, _| {
            config.late_share = 0.1;
            config.late_up_to_ms = 250_000;
            config.filtered_share = 0.0;
        });
        let end_ms = START_MS + config.length_ms + 20_000 + config.late_up_to_ms;
        harness.run(end_ms, Harness::assert_ledger_is_sound);
        harness.settle(Harness::assert_ledger_is_sound);
        assert_nothing_is_missed(&harness);
    });
}

/// Takahe's home while its worker is busy, under a ladder that ends too soon.
#[test]
fn what_comes_later_than_the_last_look_is_not_called_complete() {
    seeds::run(8, |seed| {
        let (mut harness, ..) = random(seed, |config, rng| {
            config.late_share = 0.3;
            config.late_up_to_ms = 10 * 60_000;
            (config.deleted_share, config.filtered_share) = (0.0, 0.0);
            config.rate_per_s = rng.random_range(0.5..4.0);
            // Others have no time in their IDs.
            config.codec = [Codec::Decimal, Codec::Takahe, Codec::Ulid][rng.random_range(0..3)];
        });
        harness.settings.rungs.pop();
        harness.settings.rungs[0].age_ms = 90_000;
        harness.run(START_MS + 15 * 60_000, Harness::assert_ledger_is_sound);
        harness.settle(Harness::assert_ledger_is_sound);
        assert!(!harness.missed().is_empty());
        let machine = harness.machine();
        let plan = machine.plan(&harness.settings, harness.abilities(), harness.now_ms);
        let late_ms = machine.later_than_looks_ms(&plan);
        assert!(late_ms >= Some(90_000), "{:?}", machine.lateness());
    });
}

#[test]
fn the_laws_catch_a_missing_overlap_and_second_look() {
    assert!(misses(|harness| {
        harness.settings.overlap = Overlap::Fixed(0);
        harness.settings.rungs.clear();
        // No second look: passed as soon as it is read.
        harness.settings.second_look_ms = -1_000_000;
    }));
}

#[test]
fn the_laws_catch_a_gap_closed_by_a_short_page() {
    assert!(misses(
        |harness| harness.mutant = Some(Mutant::GapClosedByShortPage)
    ));
}

#[test]
fn the_laws_catch_a_cursor_committed_before_its_posts() {
    assert!(misses(|harness| {
        harness.mutant = Some(Mutant::CursorBeforePosts);
        harness.settings.rungs.clear();
        harness.settings.second_look_ms = -1_000_000;
        harness.settings.overlap = Overlap::Fixed(1_000);
        harness.crash_share = 0.1;
    }));
}

fn misses(change: impl Fn(&mut Harness) + Copy) -> bool {
    (0..30).any(|seed| !run(seed, change).missed().is_empty())
}
