//! How answers change stored posts, and which libraries are notified.

use std::collections::{HashMap, HashSet};

use driftline_core::refresh::LookupOutcome;
use driftline_store::{
    Root, Viewer,
    history::{self, EndedBy},
    listing_sources, notify,
    refresh::{LookupAnswer, OutboxItem, count_history, forget_relayed, outbox},
    source,
};

use super::{HOUR_MS, MINUTE_MS, Workers, check_schedule, found, liked, local, polled, state_of};
use crate::world::{START_MS, Store, World, write};

on_both!(
    counts_alone_do_not_flood_libraries,
    an_edit_is_kept_and_libraries_are_notified,
    a_deleted_post_leaves_a_tombstone_with_its_history,
    content_of_a_deleted_post_can_be_erased_with_it,
    a_deleted_post_that_a_poll_shows_again_is_refreshed_again,
    the_newest_answer_wins_between_polls_and_refreshes,
    every_source_of_a_post_is_notified,
    the_sources_that_list_posts_are_found,
);

/// Notifies the world's source of the outbox; returns how many entries took a USN.
fn notify_all(world: &World, workers: &Workers) -> u64 {
    let (instance, source) = (workers.instance, world.source);
    let items = world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
    let (items, relayed) = (items.clone(), items);
    let count = world.write(move |tx| notify(tx, source, &items));
    world
        .store
        .write_blocking(Root::none(), move |tx| {
            forget_relayed(tx, instance, &relayed)
        })
        .expect("forgotten");
    assert_eq!(
        world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100)),
        Vec::<OutboxItem>::new()
    );
    count
}

fn counts_alone_do_not_flood_libraries(store: &Store) {
    let (world, workers) = polled(store, vec![liked(1, 100)]);
    let before = world.usns();
    let mut now_ms = START_MS;
    let mut refresh = |favourites: i64, after_ms: i64| {
        now_ms += after_ms;
        workers.refresh(&[found(1, favourites)], now_ms);
        notify_all(&world, &workers)
    };
    assert_eq!(refresh(200, 4 * MINUTE_MS), 0, "within the first hour");
    assert_eq!(refresh(300, 40 * MINUTE_MS), 0, "still");
    assert_eq!(refresh(301, 2 * HOUR_MS), 1, "more than a tenth");
    assert_eq!(refresh(301, 3 * HOUR_MS), 0, "nothing");
    assert_eq!(refresh(302, 3 * HOUR_MS), 0, "hardly anything");
    assert_eq!(refresh(303, 20 * HOUR_MS), 1, "another age band");
    assert_eq!(world.usns(), [(before[0].0, before[0].1 + 2)]);
}

fn an_edit_is_kept_and_libraries_are_notified(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(2, 0), liked(1, 0)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let mut edited = liked(1, 0);
    edited.edited_at_ms = Some(now_ms - 5);
    edited.raw = edited.raw.replace("text", "better text");
    let answers = [
        (1, LookupAnswer::Found(Box::new(edited.clone()))),
        found(2, 0),
    ];
    let saved = workers.refresh(&answers, now_ms);
    assert_eq!(saved.news, [(local(&world, 1), false)]);
    assert_eq!(world.timeline()[1].raw, edited.raw);
    let post = local(&world, 1);
    let versions = world.read(move |tx| history::versions(tx, post, Viewer::Operator));
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0].ended_by, EndedBy::Edit);
    assert_eq!(notify_all(&world, &workers), 1);
    assert_eq!(world.usns(), [(1, 3), (2, 2)]);
    // The next page shows the same version: that is no news any more.
    world.now_ms = now_ms + 1_000;
    let summary = world.poll(vec![liked(2, 0), edited]);
    assert_eq!((summary.edited, summary.update_count), (0, 3));
}

fn a_deleted_post_leaves_a_tombstone_with_its_history(store: &Store) {
    let (world, workers) = polled(store, vec![liked(2, 0), liked(1, 7)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[found(1, 9), found(2, 0)], now_ms);
    workers.refresh(
        &[(1, LookupAnswer::Gone), found(2, 0)],
        now_ms + 4 * MINUTE_MS,
    );
    let gone = state_of(&world, 1);
    assert_eq!(
        (gone.outcome, gone.due_at_ms),
        (Some(LookupOutcome::Deleted), None)
    );
    assert_eq!(world.timeline().len(), 1);
    let post = local(&world, 1);
    let versions = world.read(move |tx| history::versions(tx, post, Viewer::Operator));
    assert_eq!(
        versions.last().map(|last| last.ended_by),
        Some(EndedBy::Deletion)
    );
    assert_eq!(
        world
            .read(move |tx| count_history(tx, post, Viewer::Operator))
            .len(),
        2
    );
    assert_eq!(notify_all(&world, &workers), 1);
    assert!(world.export().iter().any(|row| row.usn == 3));
    assert_eq!(check_schedule(store), 1);
}

fn content_of_a_deleted_post_can_be_erased_with_it(store: &Store) {
    let (world, mut workers) = polled(store, vec![liked(1, 7)]);
    workers.keep_deleted = false;
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[found(1, 9)], now_ms);
    workers.refresh(&[(1, LookupAnswer::Gone)], now_ms + 4 * MINUTE_MS);
    let post = local(&world, 1);
    assert_eq!(
        world.read(move |tx| history::versions(tx, post, Viewer::Operator)),
        []
    );
    assert_eq!(
        world.read(move |tx| count_history(tx, post, Viewer::Operator)),
        []
    );
    assert_eq!(world.timeline().len(), 0);
}

fn a_deleted_post_that_a_poll_shows_again_is_refreshed_again(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(1, 7)]);
    workers.refresh(&[(1, LookupAnswer::Gone)], START_MS + 4 * MINUTE_MS);
    notify_all(&world, &workers);
    assert_eq!(check_schedule(store), 0);
    world.now_ms = START_MS + 10 * MINUTE_MS;
    assert_eq!(world.poll(vec![liked(1, 8)]).revived, 1);
    assert_eq!(check_schedule(store), 1);
    assert_eq!(
        state_of(&world, 1).due_at_ms,
        Some(START_MS + 13 * MINUTE_MS)
    );
}

fn the_newest_answer_wins_between_polls_and_refreshes(store: &Store) {
    let (mut world, workers) = polled(store, vec![liked(1, 7)]);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let edit = |text: &str| {
        let mut post = liked(1, 7);
        post.raw = post.raw.replace("text", text);
        post
    };
    // A poll asks, a refresh asks later and saves first: the poll's answer is old.
    workers.refresh(
        &[(1, LookupAnswer::Found(Box::new(edit("second"))))],
        now_ms + 50,
    );
    notify_all(&world, &workers);
    world.now_ms = now_ms;
    world.poll(vec![edit("first")]);
    assert!(world.timeline()[0].raw.contains("second"));
    // A refresh asks, a poll asks later and commits first: the refresh's answer is old.
    let asked_ms = now_ms + 10 * MINUTE_MS;
    let claim = workers.claim(asked_ms);
    world.now_ms = asked_ms + 50;
    world.poll(vec![edit("fourth")]);
    let saved = workers.save(
        &claim,
        &[(1, LookupAnswer::Found(Box::new(edit("third"))))],
        asked_ms,
    );
    assert_eq!(saved.outcomes[0].1, LookupOutcome::Superseded);
    assert!(world.timeline()[0].raw.contains("fourth"));
    check_schedule(store);
}

fn every_source_of_a_post_is_notified(store: &Store) {
    let mut one = World::readable(store, "one");
    let mut two = World::readable(store, "two");
    one.poll(vec![liked(1, 7)]);
    two.poll(vec![liked(2, 0), liked(1, 7)]);
    let workers = Workers::of(&one);
    let now_ms = START_MS + 4 * MINUTE_MS;
    workers.refresh(&[(1, LookupAnswer::Gone), found(2, 0)], now_ms);
    let instance = workers.instance;
    let items = one.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
    for world in [&one, &two] {
        let (items, source) = (items.clone(), world.source);
        let moved = write(store, source::root(source), move |tx| {
            notify(tx, source, &items)
        });
        assert_eq!(moved, 1);
    }
    assert_eq!(one.usns(), [(1, 2)]);
    assert_eq!(two.usns(), [(1, 3), (2, 2)]);
}

fn the_sources_that_list_posts_are_found(store: &Store) {
    let mut one = World::readable(store, "one");
    let mut two = World::readable(store, "two");
    one.poll(vec![liked(1, 7)]);
    two.poll(vec![liked(2, 0), liked(1, 7)]);
    let posts = [local(&one, 1), local(&one, 2)];
    let items = posts.map(|post| OutboxItem {
        post,
        counts: true,
        since_ms: START_MS,
    });
    let instance = one.source.instance;
    let found = one.read(move |tx| listing_sources(tx, instance, &items));
    let expected = [
        (one.source.id, HashSet::from([posts[0]])),
        (two.source.id, HashSet::from(posts)),
    ];
    assert_eq!(found, HashMap::from(expected));
}
