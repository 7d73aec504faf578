//! How long late posts take from visible to stored: what an overlap is for.

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
#[test]
fn an_overlap_stores_late_posts_with_the_next_poll() {
    seeds::run(4, |seed| {
        let (delay_ms, posts) = late_posts_wait_ms(seed, None);
        assert!(posts > 200, "{posts} late posts");
        assert!(delay_ms <= BOUND_MS, "{delay_ms} ms at p99.5 of {posts}");
    });
}

#[test]
fn without_overlap_late_posts_wait_too_long() {
    let (delay_ms, posts) = late_posts_wait_ms(0, Some(Mutant::NoOverlap));
    let (unmutated_ms, _) = late_posts_wait_ms(0, None);
    assert!(delay_ms > BOUND_MS, "{delay_ms} ms at p99.5 of {posts}");
    assert!(
        delay_ms > unmutated_ms * 3 / 2,
        "{delay_ms}, {unmutated_ms}"
    );
}

/// From visible to stored the p99.5, ms, of the posts that came more than a
/// second late after the first quarter of an hour, and how many there were.
fn late_posts_wait_ms(seed: u64, mutant: Option<Mutant>) -> (i64, usize) {
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
    let mut delays_ms: Vec<i64> = measured
        .late
        .iter()
        .filter(|late| late.visible_at_ms > learned_ms)
        .map(|late| late.stored_at_ms - late.visible_at_ms)
        .collect();
    delays_ms.sort_unstable();
    let at = (delays_ms.len() as f64 * 0.995) as usize;
    (delays_ms[at.min(delays_ms.len() - 1)], delays_ms.len())
}

const EVERY_MS: i64 = 10 * SECOND_MS;
/// A poll, and what goes on before and after it.
const BOUND_MS: i64 = EVERY_MS + 2 * SECOND_MS;
