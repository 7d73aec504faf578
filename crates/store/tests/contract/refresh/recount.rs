//! Recounts of stored posts by polls.

use driftline_core::{
    answer::{Listed, LookUp, Page},
    post::Post,
    refresh::LookupOutcome,
    timeline::Reading,
    upstream_id::UpstreamId,
};
use driftline_store::{
    Viewer, history,
    refresh::{count_history, rechecks_after},
};

use super::{
    LookupAnswer, MINUTE_MS, Workers, check_schedule, found, liked, local, polled, state_of,
};
use crate::world::{START_MS, Store, World, newest_page, page, settings};

on_both!(
    a_polls_counts_are_a_refresh_that_costs_nothing,
    polls_that_follow_each_other_closely_write_nothing,
    counts_that_a_commit_ignored_have_a_time_for_a_recheck,
    a_poll_ends_the_doubt_whether_a_post_exists,
    a_poll_leaves_a_claimed_post_to_its_claim,
    a_page_that_lists_a_post_twice_counts_it_once,
    a_deleted_post_that_comes_back_while_it_is_claimed_stays_due,
    content_is_erased_when_a_poll_finds_the_deletion,
);

fn a_polls_counts_are_a_refresh_that_costs_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(2, 0), liked(1, 7)]);
    world.now_ms = START_MS + 2 * MINUTE_MS;
    let summary = world.poll(vec![liked(2, 0), liked(1, 9)]);
    assert_eq!((summary.recounted, summary.edited), (1, 0));

    let seen = state_of(&world, 1);
    assert_eq!(seen.freshness.counts.favourites, Some(9));
    assert_eq!(seen.freshness.refreshed_ms, world.now_ms);
    assert_eq!(seen.freshness.refreshes, 0, "no probe is used up");
    assert_eq!(seen.due_at_ms, Some(world.now_ms + 3 * MINUTE_MS));
    assert_eq!(
        state_of(&world, 2).due_at_ms,
        Some(START_MS + 3 * MINUTE_MS)
    );
    let post = local(&world, 1);
    let counts = world.read(move |tx| count_history(tx, post, Viewer::Operator));
    let favourites: Vec<_> = counts.iter().map(|row| row.counts.favourites).collect();
    assert_eq!(favourites, [Some(7), Some(9)]);
    let status = world.timeline().into_iter().find(|item| item.id == post);
    let raw = status.map(|item| item.raw).expect("it is shown");
    assert!(raw.contains("favourites_count\":9"), "{raw}");
    assert_eq!(check_schedule(store), 2);
}

fn polls_that_follow_each_other_closely_write_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(1, 7)]);
    world.now_ms = START_MS + MINUTE_MS - 1;
    assert_eq!(world.poll(vec![liked(1, 8)]).recounted, 0);
    world.now_ms += 1;
    assert_eq!(world.poll(vec![liked(1, 8)]).recounted, 1);
    world.now_ms += MINUTE_MS;
    assert_eq!(
        world.poll(vec![liked(1, 8)]).recounted,
        0,
        "nothing changed"
    );
}

fn counts_that_a_commit_ignored_have_a_time_for_a_recheck(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(2, 0), liked(1, 7)]);
    assert_eq!(
        recheck_times(&world, &[liked(2, 0), liked(1, 7)]),
        [None, None]
    );
    world.now_ms = START_MS + MINUTE_MS - 1;
    let changed = [liked(2, 0), liked(1, 8)];
    assert_eq!(world.poll(changed.to_vec()).recounted, 0);
    let (newest, oldest) = (
        recheck_times(&world, &changed)[0],
        recheck_times(&world, &changed)[1],
    );
    assert_eq!((newest, oldest), (None, Some(START_MS + MINUTE_MS)));
    world.now_ms = START_MS + MINUTE_MS;
    assert_eq!(world.poll(changed.to_vec()).recounted, 1);
    assert_eq!(recheck_times(&world, &changed), [None, None]);

    // A look-up that finds it missing leaves a doubt that the next page ends.
    let workers = Workers::of(&world);
    let now_ms = START_MS + 5 * MINUTE_MS;
    workers.refresh(&[(1, LookupAnswer::Missing)], now_ms);
    assert!(recheck_times(&world, &changed)[1].is_some());
    world.now_ms = now_ms + 1_000;
    world.poll(changed.to_vec());
    assert_eq!(recheck_times(&world, &changed), [None, None]);
}

/// For each post of a page that was just committed, when it has to be checked again.
fn recheck_times(world: &World, posts: &[Post]) -> Vec<Option<i64>> {
    let mut page = page(posts.to_vec(), world.now_ms);
    let (known, source) = (world.machine.scheme().copied(), world.source);
    let reading = Reading::check(&mut page, known, &settings());
    let rechecks = world.read(move |tx| rechecks_after(tx, source, &reading, &page));
    let scheduled = rechecks
        .iter()
        .map(|recheck| recheck.expect("it is refreshed"));
    scheduled.map(|recheck| recheck.recheck_at_ms).collect()
}

fn a_poll_ends_the_doubt_whether_a_post_exists(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(1, 7)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[(1, LookupAnswer::Missing)], now_ms);
    assert!(state_of(&world, 1).freshness.missing);
    world.now_ms = now_ms + 1_000;
    assert_eq!(world.poll(vec![liked(1, 7)]).recounted, 1);
    let seen = state_of(&world, 1);
    assert!(!seen.freshness.missing);
    assert_eq!(seen.outcome, Some(LookupOutcome::Unchanged));
    assert_eq!(seen.due_at_ms, Some(world.now_ms + 3 * MINUTE_MS));
    assert_eq!(check_schedule(store), 1);
}

fn a_poll_leaves_a_claimed_post_to_its_claim(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(1, 7)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    world.now_ms = now_ms + 1_000;
    assert_eq!(world.poll(vec![liked(1, 8)]).recounted, 0);
    let saved = workers.save(&claim, &[found(1, 9)], now_ms + 2_000);
    assert_eq!(saved.outcomes.len(), 1);
    assert_eq!(state_of(&world, 1).freshness.counts.favourites, Some(9));
    assert_eq!(check_schedule(store), 1);
}

fn a_page_that_lists_a_post_twice_counts_it_once(store: &Store) {
    let mut world = World::readable(store, "mentions");
    let twice = |favourites| {
        let listed = ["12", "11"].map(|position| Listed {
            position: UpstreamId::from(position),
            post: liked(1, favourites),
        });
        Page {
            listed: listed.into(),
            ..page(Vec::new(), 0)
        }
    };
    for (at_ms, favourites, recounted) in [(0, 7, 0), (2, 9, 1)] {
        world.now_ms = START_MS + at_ms * MINUTE_MS;
        let mut shown = twice(favourites);
        shown.headers = page(Vec::new(), world.now_ms).headers;
        let summary = world.commit(&newest_page(), shown).expect("a commit");
        assert_eq!(summary.recounted, recounted);
    }
    assert_eq!(check_schedule(store), 1);
}

fn a_deleted_post_that_comes_back_while_it_is_claimed_stays_due(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(1, 7)]);
    assert_eq!(world.look_up("1", LookUp::Gone).deleted, 1);
    let workers = Workers::of(&world);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    assert_eq!(claim.posts, [], "a deleted post is not looked up");
    world.now_ms = now_ms;
    assert_eq!(world.poll(vec![liked(1, 8)]).revived, 1);
    workers.save(&claim, &[], now_ms + 1_000);
    assert_eq!(check_schedule(store), 1);
}

fn content_is_erased_when_a_poll_finds_the_deletion(store: &Store) {
    let mut world = World::readable(store, "home");
    world.keep_deleted = false;
    world.poll(vec![liked(1, 7)]);
    world.now_ms = START_MS + 2 * MINUTE_MS;
    world.poll(vec![liked(1, 9)]);
    let post = local(&world, 1);
    assert_eq!(
        world
            .read(move |tx| count_history(tx, post, Viewer::Operator))
            .len(),
        2
    );
    world.now_ms += MINUTE_MS;
    assert_eq!(world.look_up("1", LookUp::Gone).deleted, 1);
    assert_eq!(
        world.read(move |tx| history::versions(tx, post, Viewer::Operator)),
        []
    );
    assert_eq!(
        world.read(move |tx| count_history(tx, post, Viewer::Operator)),
        []
    );
}
