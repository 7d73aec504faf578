//! Sources whose posts are not kept fresh.

use driftline_core::refresh::Policy;
use driftline_store::{SourceKey, refresh::Claimed, source};

use super::{MINUTE_MS, Workers, check_schedule, found, liked, state_of};
use crate::world::{START_MS, Store, World, read};

on_both!(
    posts_of_a_source_without_refreshing_are_dropped_unless_another_keeps_them,
    a_source_that_refreshes_again_keeps_the_posts_that_a_claim_was_to_drop,
    posts_without_a_source_are_kept_fresh,
);

fn set(world: &World, source: SourceKey, refreshing: bool) {
    world.write(move |tx| source::set_refreshing(tx, source, refreshing, &Policy::default()));
}

fn upstream_ids(posts: &[driftline_store::refresh::DuePost]) -> Vec<&str> {
    posts.iter().map(|due| &*due.upstream_id).collect()
}

fn posts_of_a_source_without_refreshing_are_dropped_unless_another_keeps_them(store: &Store) {
    let mut home = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    home.poll(vec![liked(2, 0), liked(1, 0)]);
    other.poll(vec![liked(2, 0)]);
    set(&home, home.source, false);
    let workers = Workers::of(&home);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    assert_eq!(upstream_ids(&claim.posts), ["2"]);
    workers.save(&claim, &[found(2, 1)], now_ms);
    assert_eq!(state_of(&home, 1).due_at_ms, None);
    assert_eq!(check_schedule(store), 1);
    // New posts are not scheduled; those that another source shows are, from then on.
    home.poll(vec![liked(4, 0), liked(3, 0)]);
    assert_eq!(state_of(&home, 3).due_at_ms, None);
    other.poll(vec![liked(3, 0)]);
    assert!(state_of(&home, 3).due_at_ms.is_some());
    assert_eq!(state_of(&home, 4).due_at_ms, None);
    // Both off, then one on again.
    set(&other, other.source, false);
    let later_ms = START_MS + 60 * MINUTE_MS;
    let claim = workers.claim(later_ms);
    assert!(claim.posts.is_empty(), "{claim:?}");
    workers.save(&claim, &[], later_ms);
    assert_eq!(check_schedule(store), 0);
    set(&home, home.source, true);
    assert_eq!(check_schedule(store), 4);
    let found = read(store, source::list);
    let states: Vec<bool> = found.iter().map(|of| of.refreshing).collect();
    assert_eq!(states, [true, false]);
}

fn a_source_that_refreshes_again_keeps_the_posts_that_a_claim_was_to_drop(store: &Store) {
    let mut home = World::readable(store, "home");
    home.poll(vec![liked(2, 0), liked(1, 0)]);
    set(&home, home.source, false);
    let workers = Workers::of(&home);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    assert!(claim.posts.is_empty(), "{claim:?}");
    set(&home, home.source, true);
    workers.save(&claim, &[], now_ms);
    assert_eq!(check_schedule(store), 2);
    assert_eq!(workers.claim(now_ms).posts.len(), 2);
}

fn posts_without_a_source_are_kept_fresh(store: &Store) {
    let mut home = World::readable(store, "home");
    let quiet = World::readable(store, "quiet");
    home.poll(vec![liked(1, 0)]);
    set(&quiet, quiet.source, false);
    home.remove(source::LastPosts::Keep);
    let workers = Workers::of(&quiet);
    let now_ms = START_MS + 4 * MINUTE_MS;
    let Claimed::Batch(claim) = workers.ask(now_ms, 30_000) else {
        panic!("nothing is due");
    };
    assert_eq!(upstream_ids(&claim.posts), ["1"]);
}
