//! IDs that are numbers in sequence: an order without time.

use driftline_sim::seeds;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    harness::Harness,
    laws::{START_MS, settings},
    scenes::world,
    world::{Codec, World, WorldPost},
};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;

/// Mentions in sequence that become visible at these times, ms.
fn counted(times_ms: impl IntoIterator<Item = i64>) -> World {
    let posts = times_ms.into_iter().zip(1..).map(|(at_ms, id)| WorldPost {
        id,
        visible_at_ms: at_ms,
        deleted_at_ms: None,
        filtered: false,
    });
    World {
        codec: Codec::Counted,
        ..world(posts.collect())
    }
}

/// The most requests besides polls within ten seconds.
fn most_in_ten_seconds(harness: &Harness) -> usize {
    let others = &harness.others_ms;
    let within = |from_ms: &i64| {
        let span = *from_ms..from_ms + 10 * SECOND_MS;
        others.iter().filter(|ms| span.contains(ms)).count()
    };
    others.iter().map(within).max().unwrap_or(0)
}

/// Looks repeated as fast as the spacing allowed as long as mentions came for longer than a rung's
/// period.
#[test]
fn mentions_that_outlast_a_rung_cost_few_requests() {
    seeds::run(20, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let apart_ms = rng.random_range(500..20_000);
        let first_ms = START_MS + rng.random_range(-30_000..30_000);
        let times_ms = (0..40).map(|n| first_ms + n * apart_ms);
        let mut world = counted(times_ms);
        world.knows_min_id = rng.random_bool(0.5);
        let mut harness = Harness::new(world, settings(), START_MS, seed);
        harness.run(START_MS + 30 * MINUTE_MS, Harness::assert_ledger_is_sound);
        assert!(harness.missed().is_empty());
        let most = most_in_ten_seconds(&harness);
        assert!(most <= 12, "{most} in ten seconds");
        harness.settle(Harness::assert_ledger_is_sound);
        let gaps = harness.machine().ledger().gaps();
        assert!(gaps.is_empty(), "{gaps:?}");
    });
}
