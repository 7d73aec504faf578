//! Leases: one holder at a time, and a fence against the one before.

use std::{thread, time::Duration};

use driftline_store::{
    CommitMachine, Root, SourceKey, StoreError, commit_machine, database_clock, source,
    source_lease::{self, Lease},
};

use crate::world::{Store, World, names, posts, write};

on_both!(
    a_lease_is_held_until_it_ends_or_is_given_back,
    a_database_clock_that_is_set_back_lets_no_lease_last,
    an_ended_lease_is_taken_over_and_its_fence_is_refused,
    a_renewed_lease_goes_on,
    only_leases_with_their_current_fence_are_renewed,
    each_free_source_is_claimed_once,
);

const LONG_MS: i64 = 300_000;

fn claim(world: &World, holder: &'static str, ttl_ms: i64) -> Option<Lease> {
    let source = world.source;
    world.write(move |tx| source_lease::claim(tx, source, holder, ttl_ms))
}

fn a_lease_is_held_until_it_ends_or_is_given_back(store: &Store) {
    let world = World::new(store, "home");
    let first = claim(&world, "one", LONG_MS).expect("a free source");
    assert_eq!(first.fence, 1);
    let now_ms = world.write(|tx| Ok(database_clock::now_ms(tx)?));
    assert!((first.until_ms - LONG_MS - now_ms).abs() < 60_000);
    assert_eq!(claim(&world, "two", LONG_MS), None);
    assert_eq!(
        claim(&world, "one", LONG_MS),
        None,
        "not even to the same holder"
    );
    assert!(world.write(move |tx| source_lease::release(tx, &first)));
    assert!(!world.write(move |tx| source_lease::release(tx, &first)));
    let second = claim(&world, "two", LONG_MS).expect("it was given back");
    assert_eq!(second.fence, 2);
    assert!(
        !world.write(move |tx| source_lease::release(tx, &first)),
        "not its own"
    );
    assert_eq!(claim(&world, "three", LONG_MS), None);
}

fn a_database_clock_that_is_set_back_lets_no_lease_last(store: &Store) {
    let world = World::new(store, "home");
    let dead = claim(&world, "dead", LONG_MS).expect("a free source");
    // As if the clock had been two hours ahead.
    let ahead = "update source set lease_until_ms = lease_until_ms + 7200000";
    world.write(move |tx| Ok(tx.execute(ahead, &[])?));
    let next = claim(&world, "next", LONG_MS).expect("it ends later than a lease can");
    assert!(next.fence > dead.fence);
}

fn an_ended_lease_is_taken_over_and_its_fence_is_refused(store: &Store) {
    let mut world = World::readable(store, "home");
    let old = claim(&world, "one", 1).expect("a free source");
    world.fence = Some(old.fence);
    assert_eq!(world.poll(posts([1])).new, 1);
    thread::sleep(Duration::from_millis(20));
    // Ended but not taken over: no other worker can have written.
    assert_eq!(world.poll(posts([2])).new, 1);
    let new = claim(&world, "two", LONG_MS).expect("it has ended");
    assert!(new.fence > old.fence);
    assert_eq!(world.try_poll(posts([3])), Err(StoreError::LeaseLost));
    assert_eq!(
        world.write(move |tx| source_lease::renew(tx, &old, LONG_MS)),
        None
    );
    let (source, machine) = (world.source, world.machine.clone());
    let kept = store.write_blocking(source::root(source), move |tx| {
        let commit = CommitMachine {
            source,
            fence: Some(old.fence),
            machine: &machine,
        };
        commit_machine(tx, &commit)
    });
    assert_eq!(kept, Err(StoreError::LeaseLost));
    assert_eq!(names(&world.timeline()), ["2", "1"]);
    world.fence = Some(new.fence);
    assert_eq!(world.poll(posts([3])).new, 1);
    world.write(move |tx| source_lease::release(tx, &new));
    assert_eq!(world.try_poll(posts([4])), Err(StoreError::LeaseLost));
}

fn a_renewed_lease_goes_on(store: &Store) {
    let world = World::new(store, "home");
    let lease = claim(&world, "one", 1).expect("a free source");
    thread::sleep(Duration::from_millis(20));
    let renewed = world.write(move |tx| source_lease::renew(tx, &lease, LONG_MS));
    let renewed = renewed.expect("it is still free");
    assert_eq!(renewed.fence, lease.fence);
    assert!(renewed.until_ms > lease.until_ms);
    assert_eq!(claim(&world, "two", LONG_MS), None);
}

fn only_leases_with_their_current_fence_are_renewed(store: &Store) {
    let worlds = ["a", "b", "c", "d"].map(|name| World::new(store, name));
    let [running, over, lost, returned] = worlds
        .each_ref()
        .map(|world| claim(world, "one", 1).expect("a free source"));
    thread::sleep(Duration::from_millis(20));
    let taken = claim(&worlds[2], "two", LONG_MS).expect("it has ended");
    worlds[3].write(move |tx| source_lease::release(tx, &returned));
    // The lease of work that has ended is not passed, though the same process holds it.
    let in_use = [running, lost, returned];
    let renewed = store.write_blocking(Root::none(), move |tx| {
        source_lease::renew_all(tx, &in_use, LONG_MS)
    });
    let renewed = renewed.expect("renewed");
    assert_eq!(renewed.len(), 1, "{renewed:?}");
    assert_eq!(
        (renewed[0].source, renewed[0].fence),
        (running.source, running.fence)
    );
    assert!(renewed[0].until_ms > running.until_ms);
    assert_eq!(claim(&worlds[0], "two", LONG_MS), None);
    let next = claim(&worlds[1], "two", LONG_MS).expect("it was not renewed");
    assert_eq!(next.fence, over.fence + 1);
    let now_ms = worlds[2].write(|tx| Ok(database_clock::now_ms(tx)?));
    let held = worlds[2].read(move |tx| source::by_id(tx, taken.source.id));
    let held = held.expect("a source").holding.expect("held");
    assert_eq!(
        (held.holder.as_str(), held.until_ms),
        ("two", taken.until_ms)
    );
    assert!(held.until_ms > now_ms);
    let none = store.write_blocking(Root::none(), |tx| source_lease::renew_all(tx, &[], LONG_MS));
    assert_eq!(none, Ok(Vec::new()));
}

fn each_free_source_is_claimed_once(store: &Store) {
    let free = ["a", "b", "c"].map(|name| World::new(store, name).source);
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            thread::spawn(move || {
                let claim = |source: &SourceKey| {
                    let source = *source;
                    write(&store, Root::none(), move |tx| {
                        source_lease::claim(tx, source, "any", LONG_MS)
                    })
                };
                free.iter().filter_map(claim).collect::<Vec<Lease>>()
            })
        })
        .collect();
    let mut claimed: Vec<_> = claimers
        .into_iter()
        .flat_map(|claimer| claimer.join().expect("a claimer"))
        .map(|lease| lease.source)
        .collect();
    claimed.sort_unstable();
    assert_eq!(claimed, free, "each is claimed once");
}
