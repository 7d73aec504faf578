//! Batches are full while more than one is due, however many workers ask at once.

use std::{
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use driftline_core::refresh::Policy;
use driftline_store::refresh::Claimed;

use super::{LEASE_MS, MINUTE_MS, Workers, check_schedule, found, liked, value::priced};
use crate::world::{START_MS, World, on_both};

const DUE_MS: i64 = START_MS + 3 * MINUTE_MS;
/// How long a batch of [`Workers`]'s waits for more.
const TTL_MS: i64 = 2_000;
const DEADLINE: Duration = Duration::from_secs(120);

/// A world with that many posts that are due at once, and workers for batches of that size.
fn due(store: &driftline_store::Store, posts: u64, size: usize) -> (World, Workers) {
    let mut world = World::readable(store, "home");
    let ids: Vec<u64> = (1..=posts).collect();
    for page in ids.chunks(500) {
        world.poll(page.iter().rev().map(|id| liked(*id, 0)).collect());
    }
    let mut workers = Workers::of(&world);
    workers.size = size;
    (world, workers)
}

/// Has that many workers refresh posts at once, until fewer than `left` are due; returns the sizes
/// of their batches.
fn refresh(
    workers: &Workers,
    posts: usize,
    left: usize,
    threads: usize,
    now_ms: i64,
) -> Vec<usize> {
    let (begin, taken) = (Barrier::new(threads), AtomicUsize::new(0));
    let sizes = Mutex::new(Vec::new());
    let deadline = Instant::now() + DEADLINE;
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                begin.wait();
                while posts.saturating_sub(taken.load(Ordering::SeqCst)) >= left {
                    assert!(Instant::now() < deadline, "posts are due and not claimed");
                    let Claimed::Batch(claim) = workers.ask(now_ms, LEASE_MS) else {
                        thread::yield_now();
                        continue;
                    };
                    taken.fetch_add(claim.posts.len(), Ordering::SeqCst);
                    sizes.lock().expect("no panic").push(claim.posts.len());
                    let ids = claim.posts.iter().map(|due| &due.upstream_id);
                    let answers: Vec<_> = ids
                        .map(|id| found(id.parse().expect("a number"), 1))
                        .collect();
                    let saved = workers.save(&claim, &answers, now_ms);
                    assert_eq!(saved.outcomes.len(), answers.len(), "none was held twice");
                }
            });
        }
    });
    sizes.into_inner().expect("no panic")
}

#[test]
fn batches_are_full_while_more_than_one_is_due() {
    check_fill(&Arc::default(), &[(20, 615), (100, 1_615)], &[1, 4]);
}

/// Each claim looks at four batches of posts, and leaves three of them to others.
#[test]
fn batches_by_value_are_full_while_more_than_one_is_due() {
    check_fill(&priced(1e-9), &[(20, 215)], &[1, 4]);
}

fn check_fill(policy: &Arc<Policy>, cases: &[(usize, u64)], thread_counts: &[usize]) {
    for (size, posts) in cases.iter().copied() {
        for threads in thread_counts.iter().copied() {
            on_both(|store| {
                // Neither while a batch may wait for more nor when its time is over.
                for waited_ms in [0, TTL_MS] {
                    let (world, mut workers) = due(store, posts, size);
                    workers.policy = Arc::clone(policy);
                    let posts = posts as usize;
                    let now_ms = DUE_MS + waited_ms;
                    let sizes = refresh(&workers, posts, size, threads, now_ms);
                    let case = format!("{threads} threads, {waited_ms} ms: {sizes:?}");
                    let taken: usize = sizes.iter().sum();
                    let fill = taken as f64 / (sizes.len() * size) as f64;
                    assert!(fill >= 0.95, "{fill}: {case}");
                    let partial = sizes.iter().filter(|taken| **taken < size).count();
                    assert!(partial <= 1, "the rest is one batch: {case}");
                    let rest = refresh(&workers, posts - taken, 1, threads, DUE_MS + TTL_MS);
                    assert!(rest.len() <= 1, "the rest is one batch: {rest:?}");
                    assert_eq!(taken + rest.iter().sum::<usize>(), posts, "each once");
                    assert_eq!(check_schedule(store), posts);
                    world.remove(driftline_store::source::LastPosts::Remove);
                }
            });
        }
    }
}

#[test]
fn no_post_waits_longer_for_a_full_batch_than_it_may() {
    for threads in [1, 2, 4] {
        on_both(|store| {
            let (_world, workers) = due(store, 33, 20);
            let full = refresh(&workers, 33, 20, threads, DUE_MS);
            assert_eq!(full, [20]);
            for waited_ms in [0, 1, TTL_MS - 1] {
                let asked = thread::scope(|scope| {
                    let ask = || workers.ask(DUE_MS + waited_ms, LEASE_MS);
                    let asking: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
                    let answers = asking.into_iter().map(|asking| asking.join());
                    answers
                        .map(|asked| asked.expect("no panic"))
                        .collect::<Vec<_>>()
                });
                let first_ms = DUE_MS + TTL_MS;
                assert_eq!(asked, vec![Claimed::Until(first_ms); threads]);
            }
            let rest = refresh(&workers, 13, 1, threads, DUE_MS + TTL_MS);
            assert_eq!(rest, [13]);
        });
    }
}
