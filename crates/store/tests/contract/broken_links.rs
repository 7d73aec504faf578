//! Writers on one instance, over links that delay and cut their connections: at a cut a commit may or
//! may not have been made.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use driftline_db::{
    DbError,
    testing::{Cuts, Fresh},
};
use driftline_sim::seeds;
use driftline_store::{
    MIGRATIONS, Options, SourceKey, Store, StoreError, block_on, reservation, timeline,
};

use crate::{
    shared_instance::{TURNS, check, posts_of},
    world::{EVERYTHING, START_MS, World, open},
};

const WRITERS: u64 = 6;
/// Well above the time of one.
const MAX_RESERVATION: Duration = Duration::from_secs(20);
/// Bounds how often a page is tried.
const TRIES: usize = 200;

#[test]
fn writers_over_links_that_are_cut_store_each_post_once_and_in_order() {
    seeds::in_turn(1, |seed| {
        let fresh = Fresh::postgres();
        let store = open(&fresh);
        let sources: Vec<SourceKey> = (0..WRITERS)
            .map(|n| World::readable(&store, &format!("source{n}")).source)
            .collect();
        let (cut, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let reading = scope.spawn(|| read_until(&store, &is_over));
            let writing: Vec<_> = (0..)
                .zip(&sources)
                .map(|(writer, source)| {
                    let (fresh, cut) = (&fresh, &cut);
                    scope.spawn(move || write(fresh, *source, writer, seed, cut))
                })
                .collect();
            let written: Vec<_> = writing.into_iter().map(|writer| writer.join()).collect();
            is_over.store(true, Ordering::Release);
            reading.join().expect("the order is kept");
            assert!(written.iter().all(Result::is_ok), "a writer failed");
        });
        assert!(cut.load(Ordering::Relaxed) > 0, "no connection was cut");
        // What a writer had reserved when it was cut hides later posts until its time is over.
        let deadline = Instant::now() + MAX_RESERVATION;
        while block_on(reservation::end_expired(&store)) != Ok(0) {
            assert!(Instant::now() < deadline, "a reservation does not end");
            thread::yield_now();
        }
        check(&store, &sources);
        store.close_blocking();
    });
}

fn write(fresh: &Fresh, source: SourceKey, writer: u64, seed: u64, cut: &AtomicU64) {
    let cuts = Cuts {
        seed: seed * WRITERS + writer,
        mean_packets: 40,
    };
    let target = fresh.over_link(Duration::from_micros(300), cuts);
    let options = Options::new(target, MIGRATIONS).with_connections(2);
    let mut opened = (0..TRIES).map(|_| Store::open_with(options.clone()));
    let store = opened.find_map(Result::ok).expect("a store");
    for turn in 0..TURNS {
        let tried = (0..TRIES).any(|_| {
            // Whether the last commit was made is known from the store alone.
            let mut world = World::of(&store, source);
            world.now_ms = START_MS + turn as i64 * 5000 + writer as i64;
            match world.try_poll(posts_of(writer, turn)) {
                Ok(_) => true,
                Err(StoreError::Db(DbError::CommitUnknown | DbError::ConnectionLost(_))) => {
                    cut.fetch_add(1, Ordering::Relaxed);
                    false
                }
                Err(error) => panic!("{error}"),
            }
        });
        assert!(tried, "a page was cut {TRIES} times");
    }
    cut.fetch_add(store.stats().reconnects, Ordering::Relaxed);
    store.close_blocking();
}

/// Reads the public timeline again and again: nothing appears below what was seen.
fn read_until(store: &Store, is_over: &AtomicBool) {
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        let public = store
            .read_blocking(|tx| timeline::public(tx, &EVERYTHING, timeline::Viewer::Anonymous));
        let ids: BTreeSet<u64> = public
            .expect("a timeline")
            .iter()
            .map(|post| post.id.raw())
            .collect();
        let last = seen.last().copied().unwrap_or(0);
        let late: Vec<&u64> = ids.difference(&seen).filter(|id| **id < last).collect();
        assert_eq!(late, Vec::<&u64>::new(), "below {last}");
        seen = ids;
        if was_over {
            return;
        }
    }
}
