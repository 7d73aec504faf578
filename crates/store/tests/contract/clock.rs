//! Local IDs never repeat, whatever becomes of the processes that take them and of their clocks.

use std::collections::BTreeSet;

use driftline_db::testing::databases;
use driftline_store::{source, timeline::Viewer};

use crate::world::{START_MS, World, open, posts};

const HOUR_MS: i64 = 3_600_000;

fn ids(world: &World) -> Vec<u64> {
    let posts = world.timeline_for(Viewer::Trusted);
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
        world.write(move |tx| source::remove(tx, source, START_MS - HOUR_MS));
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
