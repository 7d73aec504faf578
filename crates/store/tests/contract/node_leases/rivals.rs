//! Holders on several threads and in several processes.

use std::{collections::BTreeMap, sync::mpsc, thread, time::Duration};

use driftline_db::testing::databases;
use driftline_id::{
    ClockPolicy, Field, Layout, SharedGenerator,
    clock::{Clock, ManualClock, TickedClock},
    file::Keeper,
    window::{Lease, LeaseStore, WindowConfig},
};
use driftline_store::node_lease::NodeLeases;

use super::{
    LEASE_MS, NOW_US, TINY, WINDOW_CONFIG, acquire, generator, layout, list, node, nodes, pass,
    write,
};
use crate::world::Store;

on_both!(
    a_renewal_that_commits_during_a_take_over_is_seen,
    a_keeper_extends_the_window,
);

/// Whoever takes a node over must see what its last holder recorded, even if that commits
/// between reading the row and writing it.
fn a_renewal_that_commits_during_a_take_over_is_seen(store: &Store) {
    let (lease, window) = acquire(&nodes(store, "a"), NOW_US);
    pass(store, LEASE_MS);
    let renewed = lease.record().extended(lease.due_us(), &WINDOW_CONFIG);
    let renewed = renewed.expect("a renewal is due");
    let (until_us, text) = (renewed.until_us(), renewed.to_string());
    let (started, has_started) = mpsc::channel();
    let rival = thread::spawn({
        let b = nodes(store, "b");
        move || {
            has_started.recv().expect("a start");
            b.acquire_node(node(0), NOW_US).expect("it has ended")
        }
    });
    write(store, move |tx| {
        let changed = tx
            .execute("update node_lease set record = $1", &[&text])
            .expect("a statement");
        let _ = started.send(());
        // The rival has read the row, and waits for it, when this commits.
        thread::sleep(Duration::from_millis(300));
        changed
    });
    let (_, next) = rival.join().expect("a rival");
    assert!(until_us > window.until_us());
    assert_eq!(next.from_us(), until_us);
}

/// Two stores stand for two processes.
#[test]
fn threads_that_acquire_at_once_get_different_nodes() {
    const WIDE: Layout = layout("wide", &[Field::node("node", 4), Field::sequence(18)]);
    for fresh in databases() {
        let open = || driftline_store::testing::open(&fresh);
        let stores = [open(), open()];
        let mut used: BTreeMap<u64, i64> = BTreeMap::new();
        for round in 0..6 {
            let holders: Vec<_> = (0..8_u64)
                .map(|n| {
                    let store = stores[n as usize % 2].clone();
                    let nodes = NodeLeases::new(store, WIDE, WINDOW_CONFIG, format!("holder {n}"));
                    thread::spawn(move || nodes.acquire(NOW_US).expect("a node"))
                })
                .collect();
            let held: Vec<_> = holders
                .into_iter()
                .map(|holder| holder.join().expect("a holder"))
                .collect();
            let mut numbers: Vec<u64> = held.iter().map(|(l, _)| l.node().number()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..8).collect::<Vec<u64>>(), "on {}", fresh.name);
            for (n, (lease, window)) in held.into_iter().enumerate() {
                let number = lease.node().number();
                let last = used.insert(number, window.until_us());
                assert!(last.is_none_or(|last| window.from_us() >= last));
                // Half of them crash.
                if n % 2 == round % 2 {
                    let clock = ManualClock::at_us(window.until_us());
                    let retired = generator(window, &clock).retire();
                    used.insert(number, retired.until_us());
                    lease.release(retired).expect("a release");
                }
            }
            pass(&stores[0], 2 * LEASE_MS);
        }
        stores.iter().for_each(|store| store.close_blocking());
    }
}

fn a_keeper_extends_the_window(store: &Store) {
    let window_config = WindowConfig {
        length_ms: 200,
        max_clock_skew_ms: 60_000,
    };
    let nodes = NodeLeases::new(store.clone(), TINY, window_config, "a");
    let clock = TickedClock::start();
    let (lease, window) = nodes.acquire(clock.fresh_us()).expect("a node");
    let first_until_us = window.until_us();
    let keeper = Keeper::start(lease, clock.clone()).expect("a thread");
    let policy = ClockPolicy::Wait { at_most_ms: 10_000 };
    let ids = SharedGenerator::new(window, clock.clone(), policy).expect("a generator");
    let mut last = 0;
    while clock.fresh_us() < first_until_us + 200_000 {
        let id = ids.next_id().expect("an ID");
        assert!(id > last);
        last = id;
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(keeper.take_failure(), None);
    let retired = ids.retire().expect("it was not retired before");
    keeper.close(retired).expect("a release");
    let listed = &list(store)[0];
    assert_eq!((listed.holder.as_ref(), listed.fence), (None, 1));
    assert!(listed.until_us > first_until_us);
}
