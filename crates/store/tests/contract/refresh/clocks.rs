//! Times that a wrong clock has written: they stop nothing.

use driftline_core::refresh::LookupOutcome;
use driftline_store::{
    instance,
    refresh::{Claimed, LookupAnswer, correct_times_ahead, has_times_ahead},
};

use super::{HOUR_MS, MINUTE_MS, Workers, check_schedule, found, liked, polled, state_of};
use crate::world::{START_MS, Store, World, post};

on_both!(
    a_post_that_was_refreshed_while_the_clock_was_ahead_is_due_as_soon_as_any_other,
    a_claim_under_way_is_left_to_its_save,
    a_post_that_was_stored_before_its_own_creation_is_refreshed_once_the_clock_is_right,
    answers_are_taken_though_a_clock_that_was_ahead_dated_what_is_stored,
    local_ids_show_that_a_clock_was_ahead,
);

const DAY_MS: i64 = 24 * HOUR_MS;
/// How long a batch waits to be full.
const BUFFER_MS: i64 = 2_000;

/// Corrects all times of the instance; returns in how many parts.
fn correct(world: &World, now_ms: i64) -> usize {
    let id = world.source.instance;
    let (mut above, mut parts) = (i64::MIN, 0);
    loop {
        parts += 1;
        let next = world.store.write_blocking(instance::root(id), move |tx| {
            correct_times_ahead(tx, id, above, now_ms)
        });
        match next.expect("a write") {
            Some(next) => above = next,
            None => return parts,
        }
    }
}

fn a_post_that_was_refreshed_while_the_clock_was_ahead_is_due_as_soon_as_any_other(store: &Store) {
    let (world, workers) = polled(store, vec![liked(2, 0), liked(1, 5)]);
    let due_ms = START_MS + 3 * MINUTE_MS;
    workers.refresh(&[found(1, 6), found(2, 0)], due_ms + 2 * DAY_MS);
    let ahead_ms = state_of(&world, 1).due_at_ms.expect("a due time");
    assert!(ahead_ms > due_ms + 2 * DAY_MS);
    let now_ms = due_ms + 8_000;
    correct(&world, now_ms);
    for id in [1, 2] {
        let state = state_of(&world, id);
        assert_eq!(state.due_at_ms, Some(now_ms));
        assert_eq!(state.freshness.refreshed_ms, now_ms);
    }
    assert_eq!(check_schedule(store), 2);
    // Nothing is left to do.
    assert_eq!(correct(&world, now_ms), 1);
    let saved = workers.refresh(&[found(1, 9), found(2, 0)], now_ms + BUFFER_MS);
    let outcomes = saved.outcomes.iter().map(|(_, outcome)| *outcome);
    assert!(
        outcomes
            .into_iter()
            .any(|outcome| outcome == LookupOutcome::Updated)
    );
    assert_eq!(state_of(&world, 1).freshness.counts.favourites, Some(9));
}

fn a_claim_under_way_is_left_to_its_save(store: &Store) {
    let (world, workers) = polled(store, vec![liked(1, 5)]);
    let due_ms = START_MS + 3 * MINUTE_MS;
    workers.refresh(&[found(1, 6)], due_ms + 2 * DAY_MS);
    let later_ms = state_of(&world, 1).due_at_ms.expect("a due time");
    let claim = workers.claim(later_ms + BUFFER_MS);
    correct(&world, due_ms);
    let saved = workers.try_save_at(&claim, &[found(1, 7)], due_ms, due_ms + 200);
    // In memory, the claim ended when the clock was set back.
    match saved {
        Ok(_) => assert_eq!(state_of(&world, 1).freshness.refreshed_ms, due_ms),
        Err(error) => assert_eq!(error, driftline_store::StoreError::LeaseLost),
    }
    assert_eq!(check_schedule(store), 1);
    correct(&world, due_ms);
    assert!(state_of(&world, 1).due_at_ms.expect("a due time") < due_ms + HOUR_MS);
}

fn a_post_that_was_stored_before_its_own_creation_is_refreshed_once_the_clock_is_right(
    store: &Store,
) {
    let mut world = World::readable(store, "home");
    let mut early = post(1, "text");
    early.created_at_ms = Some(START_MS + 2 * HOUR_MS);
    let mut undated = post(2, "text");
    undated.created_at_ms = None;
    world.poll(vec![undated, early]);
    assert_eq!(state_of(&world, 1).due_at_ms, None);
    correct(&world, START_MS);
    assert_eq!(
        state_of(&world, 1).due_at_ms,
        None,
        "the clock is still behind"
    );
    let now_ms = START_MS + 2 * HOUR_MS + 5_000;
    correct(&world, now_ms);
    assert_eq!(state_of(&world, 1).due_at_ms, Some(now_ms));
    assert_eq!(state_of(&world, 2).due_at_ms, None, "without a time");
    assert_eq!(check_schedule(store), 1);
    let claimed = Workers::of(&world).ask(now_ms + 2_000, 30_000);
    assert!(matches!(claimed, Claimed::Batch(claim) if claim.posts.len() == 1));
}

fn answers_are_taken_though_a_clock_that_was_ahead_dated_what_is_stored(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(1, 5)]);
    let now_ms = world.now_ms;
    world.now_ms = now_ms + 2 * DAY_MS;
    let edited = |text: &str| {
        let mut edited = post(1, text);
        edited.edited_at_ms = None;
        edited
    };
    assert_eq!(world.poll(vec![edited("ahead")]).edited, 1);
    world.now_ms = now_ms + MINUTE_MS;
    assert_eq!(world.poll(vec![edited("now")]).edited, 1);
    assert!(world.timeline()[0].raw.contains("now"));
    // And a look-up's.
    correct(&world, world.now_ms);
    let due_ms = state_of(&world, 1).due_at_ms.expect("a due time");
    let saved = workers.refresh(
        &[(1, LookupAnswer::Gone)],
        due_ms.max(world.now_ms) + BUFFER_MS,
    );
    assert_eq!(saved.outcomes[0].1, LookupOutcome::Deleted);
}

fn local_ids_show_that_a_clock_was_ahead(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(1, 5)]);
    let now_ms = world.now_ms;
    let is_ahead = |world: &World, now_ms| world.read(move |tx| has_times_ahead(tx, now_ms));
    assert!(!is_ahead(&world, now_ms));
    assert!(is_ahead(&world, now_ms - DAY_MS));
}
