//! From the first due time to the next: claims, leases and saves.

use std::sync::Arc;

use driftline_core::refresh::{LearnedState, LookupOutcome, RefreshPlan, ValueSettings};
use driftline_store::{
    StoreError, Viewer, block_on,
    refresh::{Claim, Claimed, LookupTarget, count_history},
    source,
};

use super::{HOUR_MS, MINUTE_MS, check_schedule, found, liked, local, polled, state_of};
use crate::world::{START_MS, Store, World, post};

on_both!(
    a_new_post_has_its_first_due_time_with_its_row,
    a_refreshed_post_holds_the_new_counts_and_is_due_again,
    all_claims_of_a_worker_can_be_given_back_by_its_name,
    a_claim_that_is_given_back_is_due_as_it_was,
    posts_without_an_answer_are_due_as_they_were,
    removed_posts_leave_the_schedule,
    a_batch_that_leaves_half_empty_takes_the_most_valuable_posts_along,
);

fn a_new_post_has_its_first_due_time_with_its_row(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut ancient = post(2, "text");
    ancient.created_at_ms = Some(START_MS - 31 * 24 * HOUR_MS);
    let mut undated = post(1, "text");
    undated.created_at_ms = None;
    world.poll(vec![liked(3, 4), ancient, undated]);
    let fresh = state_of(&world, 3);
    assert_eq!(fresh.due_at_ms, Some(START_MS + 3 * MINUTE_MS));
    assert_eq!(fresh.freshness.counts.favourites, Some(4));
    assert_eq!(state_of(&world, 2).due_at_ms, None, "too old");
    assert_eq!(state_of(&world, 1).due_at_ms, None, "without a time");
    assert_eq!(check_schedule(store), 1);
}

fn a_refreshed_post_holds_the_new_counts_and_is_due_again(store: &Store) {
    let (world, workers) = polled(store, vec![liked(2, 0), liked(1, 5)]);
    let now_ms = START_MS + 3 * MINUTE_MS + 2_000;
    let saved = workers.refresh(&[found(1, 8), found(2, 0)], now_ms);
    let outcome = |id| {
        let of =
            |(post, outcome)| (post == LookupTarget::Stored(local(&world, id))).then_some(outcome);
        saved.outcomes.iter().copied().find_map(of)
    };
    assert_eq!(outcome(1), Some(LookupOutcome::Updated));
    assert_eq!(outcome(2), Some(LookupOutcome::Unchanged));
    let one = state_of(&world, 1);
    assert_eq!(one.freshness.counts.favourites, Some(8));
    assert_eq!(one.due_at_ms, Some(now_ms + 3 * MINUTE_MS));
    assert_eq!(one.outcome, Some(LookupOutcome::Updated));
    let raw = world.timeline()[1].raw.clone();
    assert!(raw.contains("\"favourites_count\":8"), "{raw}");
    let post = local(&world, 1);
    let history = world.read(move |tx| count_history(tx, post, Viewer::Operator));
    let counts: Vec<_> = history
        .iter()
        .map(|row| (row.at_ms, row.counts.favourites))
        .collect();
    assert_eq!(counts, [(START_MS, Some(5)), (now_ms, Some(8))]);
    assert_eq!(check_schedule(store), 2);
}

fn all_claims_of_a_worker_can_be_given_back_by_its_name(store: &Store) {
    let (_, mut workers) = polled(store, vec![liked(2, 0), liked(1, 0)]);
    workers.size = 1;
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.claim(now_ms);
    let others = {
        let other = workers.ask_as("other", now_ms, 30_000);
        let Claimed::Batch(other) = other else {
            panic!("{other:?}")
        };
        other
    };
    let give_back = |name: &str| {
        let claims = &workers.claims;
        block_on(claims.give_back_of(store, workers.instance, name.to_owned()))
            .expect("given back");
    };
    give_back("another worker");
    assert!(!matches!(workers.ask(now_ms, 30_000), Claimed::Batch(_)));
    give_back("worker");
    assert_eq!(check_schedule(store), 2);
    // In memory nothing is ever left behind.
    if store.dialect() == driftline_db::Dialect::Postgres {
        assert_eq!(workers.claim(now_ms).posts.len(), 1);
    }
    assert!(
        workers.try_save(&others, &[], now_ms).is_ok(),
        "it holds its own"
    );
}

fn a_claim_that_is_given_back_is_due_as_it_was(store: &Store) {
    let (_, workers) = polled(store, vec![liked(2, 0), liked(1, 0)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    block_on(workers.claims.give_back(store, claim.clone())).expect("given back");
    assert_eq!(check_schedule(store), 2);
    assert_eq!(
        workers.try_save(&claim, &[found(1, 9)], now_ms),
        Err(StoreError::LeaseLost)
    );
    // Which of the two comes first depends on the shard that is read first.
    let by_id = |claim: &Claim| {
        let mut posts = claim.posts.clone();
        posts.sort_by(|a, b| a.upstream_id.cmp(&b.upstream_id));
        posts
    };
    assert_eq!(by_id(&workers.claim(now_ms)), by_id(&claim));
}

fn posts_without_an_answer_are_due_as_they_were(store: &Store) {
    let (world, workers) = polled(store, vec![liked(2, 0), liked(1, 0)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    workers.save(&claim, &[found(2, 1)], now_ms);
    assert_eq!(
        state_of(&world, 1).due_at_ms,
        Some(START_MS + 3 * MINUTE_MS)
    );
    let again = workers.claim(now_ms);
    assert_eq!(again.posts.len(), 1);
    assert_eq!(again.posts[0].upstream_id, "1");
    check_schedule(store);
}

fn removed_posts_leave_the_schedule(store: &Store) {
    let (world, workers) = polled(store, vec![liked(2, 0), liked(1, 0)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    world.remove(source::LastPosts::Remove);
    // The worker that holds them learns it when it saves.
    workers.save(&claim, &[found(1, 9), found(2, 9)], now_ms);
    assert_eq!(check_schedule(store), 0);
}

fn a_batch_that_leaves_half_empty_takes_the_most_valuable_posts_along(store: &Store) {
    let (_, mut workers) = polled(
        store,
        (1..=6)
            .rev()
            .map(|id| liked(id, 10_i64.pow(id as u32)))
            .collect(),
    );
    workers.size = 2;
    let due_ms = START_MS + 3 * MINUTE_MS;
    // Two are refreshed, and so are due three minutes after the others.
    let first = workers.claim(due_ms);
    let answers: Vec<_> = (1..=6).map(|id| found(id, 10_i64.pow(id as u32))).collect();
    workers.save(&first, &answers, due_ms);
    workers.size = 6;
    let now_ms = due_ms + 2 * MINUTE_MS;
    let plain = workers.claim(now_ms);
    assert_eq!(plain.posts.len(), 4, "by age alone nothing is taken along");
    block_on(workers.claims.give_back(store, plain)).expect("given back");
    let plan = RefreshPlan {
        by_value: Some(ValueSettings::default()),
        ..RefreshPlan::default()
    };
    workers.policy = Arc::new(LearnedState::new(0).policy(&plan));
    workers.size = 5;
    let full = workers.claim(now_ms);
    assert_eq!(full.posts.len(), 5);
    let taken: Vec<_> = full
        .posts
        .iter()
        .filter(|due| due.due_at_ms > now_ms)
        .collect();
    assert_eq!(taken.len(), 1);
    let left: Vec<_> = first
        .posts
        .iter()
        .map(|due| due.upstream_id.parse::<u64>())
        .collect();
    let most = left.into_iter().flatten().max().expect("a post");
    assert_eq!(
        taken[0].upstream_id,
        most.to_string(),
        "the one with the most to gain"
    );
    workers.save(&full, &answers, now_ms);
    assert_eq!(check_schedule(store), 6);
}
