//! How long late posts take from visible to stored: what an overlap is for.

use std::sync::Mutex;

use driftline_core::{
    answer::Abilities,
    timeline::{Backfill, Overlap, Settings},
};
use driftline_sim::{SpanMs, WorldConfig, seeds};

use crate::{
    faults::Faults,
    mutants::Mutant,
    settings::{Drawn, MINUTE_MS, SECOND_MS},
    simulation::Simulation,
};

/// One post in ten is 1 to 3 s late, and polls come every ten seconds: an
/// overlap brings them with the next poll, nothing else before they are as old
/// as a second look.
///
/// The bound is on all seeds together: of one seed's posts the p99.5 is nearly the longest, and a
/// single post in a rare place may wait for a second look.
#[test]
fn an_overlap_stores_late_posts_with_the_next_poll() {
    let delays_ms = Mutex::new(Vec::new());
    seeds::run(4, |seed| {
        let of_seed = delays_of_late_posts_ms(seed, None);
        assert!(of_seed.len() > 200, "{} late posts", of_seed.len());
        delays_ms.lock().unwrap().extend(of_seed);
    });
    let delays_ms = delays_ms.into_inner().unwrap();
    let posts = delays_ms.len();
    let delay_ms = p995(delays_ms);
    // A replay of one seed has too few for this.
    assert!(
        posts < MIN_POSTS || delay_ms <= BOUND_MS,
        "{delay_ms} ms at p99.5 of {posts}"
    );
}

#[test]
fn without_overlap_late_posts_wait_too_long() {
    let slow = |mutant| {
        let delays_ms = delays_of_late_posts_ms(0, mutant).into_iter();
        delays_ms.filter(|ms| *ms > BOUND_MS).count()
    };
    let (without, with) = (slow(Some(Mutant::NoOverlap)), slow(None));
    assert!(
        without > 3 * with.max(1),
        "{without} too slow, {with} with overlap"
    );
}

fn p995(mut delays_ms: Vec<i64>) -> i64 {
    delays_ms.sort_unstable();
    let at = (delays_ms.len() as f64 * 0.995) as usize;
    delays_ms[at.min(delays_ms.len() - 1)]
}

/// From visible to stored, ms, of each post that came more than a second late
/// after the first quarter of an hour.
fn delays_of_late_posts_ms(seed: u64, mutant: Option<Mutant>) -> Vec<i64> {
    let runs_for_ms = 60 * MINUTE_MS;
    let drawn = Drawn {
        world: WorldConfig {
            publish_for_ms: Some(runs_for_ms),
            federated_share: 0.1,
            federated_backdate_ms: SpanMs::new(1_000, 3_000),
            // A page holds what comes between two polls, and the overlap.
            page_limit: 40,
            ..WorldConfig::punctual(1.0)
        },
        settings: Settings {
            every_ms: EVERY_MS,
            overlap: Overlap::Adaptive,
            backfill: Backfill::All,
            ..Drawn::short(seed).settings
        },
        abilities: Abilities {
            page_limit: 40,
            min_id: true,
        },
        joins_after_ms: 0,
        runs_for_ms,
        streams: false,
        refreshes: false,
        faults: Faults::default(),
        ..Drawn::short(seed)
    };
    let learned_ms = drawn.start_ms() + 15 * MINUTE_MS;
    let simulation = Simulation::new(drawn);
    let simulation = match mutant {
        Some(mutant) => simulation.with(mutant),
        None => simulation,
    };
    let measured = simulation.run().unwrap();
    measured
        .late
        .iter()
        .filter(|late| late.visible_at_ms > learned_ms)
        .map(|late| late.stored_at_ms - late.visible_at_ms)
        .collect()
}

const EVERY_MS: i64 = 10 * SECOND_MS;
/// A poll, and what goes on before and after it.
const BOUND_MS: i64 = EVERY_MS + 2 * SECOND_MS;
/// Enough for the p99.5 to lie well below the longest.
const MIN_POSTS: usize = 800;
