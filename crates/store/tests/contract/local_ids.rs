//! Local IDs never repeat, whatever becomes of the processes that take them and of their clocks.

use std::collections::BTreeSet;

use driftline_db::testing::databases;
use driftline_store::{
    StoreError,
    local_ids::{self, MIN_LOCAL_ID},
    source,
    timeline::Viewer,
};

use crate::world::{START_MS, Store, World, new_source, open, posts, write};

on_both!(
    a_clock_that_is_not_set_gives_no_id_that_a_source_may_have,
    no_source_gets_an_id_that_a_post_may_have,
);

const HOUR_MS: i64 = 3_600_000;

fn ids(world: &World) -> Vec<u64> {
    let posts = world.timeline_for(Viewer::Operator);
    posts.iter().map(|post| post.id.raw()).collect()
}

#[test]
fn a_restart_with_the_clock_moved_back_repeats_no_id() {
    for fresh in databases() {
        let store = open(&fresh);
        let mut world = World::readable(&store, "home");
        world.poll(posts([3, 2, 1]));
        let source = world.source;
        store.close_blocking();

        let store = open(&fresh);
        let mut world = World::of(&store, source);
        world.now_ms = START_MS - HOUR_MS;
        world.poll(posts([5, 4]));
        let ids = ids(&world);
        assert_eq!(ids.len(), 5);
        assert!(
            ids.windows(2).all(|pair| pair[0] == pair[1] + 1),
            "{ids:?} on {}",
            fresh.name
        );
        store.close_blocking();
    }
}

#[test]
fn ids_of_what_was_removed_are_not_given_again_after_a_restart() {
    for fresh in databases() {
        let store = open(&fresh);
        let mut world = World::readable(&store, "home");
        world.poll(posts([3, 2, 1]));
        let (source, before) = (world.source, ids(&world));
        world.write(move |tx| source::remove(tx, source, source::LastPosts::Remove));
        store.close_blocking();

        let store = open(&fresh);
        let mut world = World::readable(&store, "home");
        world.now_ms = START_MS - HOUR_MS;
        world.poll(posts([3, 2, 1]));
        let last_before = before.iter().max();
        assert!(ids(&world).iter().min() > last_before, "on {}", fresh.name);
        store.close_blocking();
    }
}

#[test]
fn processes_whose_clocks_differ_by_hours_repeat_no_id() {
    for fresh in databases() {
        let stores = [open(&fresh), open(&fresh)];
        let mut worlds = [
            World::readable(&stores[0], "fast"),
            World::readable(&stores[1], "slow"),
        ];
        let mut seen = BTreeSet::new();
        for turn in 1..=10 {
            for (world, skew_ms) in worlds.iter_mut().zip([HOUR_MS, -HOUR_MS]) {
                // Each clock also goes back every third time.
                world.now_ms = START_MS + skew_ms - i64::from(turn % 3 == 0) * HOUR_MS;
                world.poll(posts([u64::from(turn % 2 == 0) * 100 + turn]));
                let newest = ids(world)[0];
                assert!(seen.last().is_none_or(|last| newest > *last));
                seen.insert(newest);
            }
        }
        assert_eq!(seen.len(), 20, "on {}", fresh.name);
        stores.iter().for_each(|store| store.close_blocking());
    }
}

fn a_clock_that_is_not_set_gives_no_id_that_a_source_may_have(store: &Store) {
    let mut world = World::new(store, "home");
    world.now_ms = 0;
    world.poll(Vec::new());
    world.poll(posts([3, 2, 1]));
    let ids = ids(&world);
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id >= MIN_LOCAL_ID as u64), "{ids:?}");
}

fn no_source_gets_an_id_that_a_post_may_have(store: &Store) {
    let last_but_one = MIN_LOCAL_ID - 2;
    write(store, local_ids::root(), move |tx| {
        let sql = "update local_clock set last_source_id = $1 where one = 1";
        Ok::<_, StoreError>(tx.execute(sql, &[&last_but_one])?)
    });
    let add = |name| {
        let new = new_source(name);
        store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, START_MS))
    };
    let last = add("last").map(|added| added.map(|key| key.id.raw()));
    assert_eq!(last, Ok(Ok(MIN_LOCAL_ID as u64 - 1)));
    for _ in 0..2 {
        assert_eq!(add("one_more"), Err(StoreError::NoSourceIds));
    }
}
