//! A forked process makes none of its parent's IDs, and can start its own.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use driftline_id::clock::{Clock, ManualClock, SystemClock, TickedClock};
use driftline_id::file::{FileError, Keeper, KeeperError, NodeFolder, ReservationFile};
use driftline_id::window::{Lease, LeaseStore};
use driftline_id::{
    Batch, ClockPolicy, Generator, Lane, Layout, Node, NotNow, Refusal, SharedGenerator, Window,
};
use fork::Fork;

mod support;

use support::{TestLease, WINDOW_CONFIG, node, open};

const POLICY: ClockPolicy = ClockPolicy::Wait { at_most_ms: 10_000 };

#[test]
fn a_forked_process_makes_none_of_its_parents_ids() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TickedClock::start();
    let nodes = NodeFolder::new(folder.path(), Layout::TWITTER, WINDOW_CONFIG);
    let (held, window) = nodes.acquire(clock.fresh_us()).unwrap();
    let (kept, kept_window) = nodes.acquire(clock.fresh_us()).unwrap();
    let shared = SharedGenerator::new(kept_window, clock.clone(), POLICY).unwrap();
    let mut exclusive = Generator::new(window, clock.clone(), POLICY).unwrap();
    exclusive.next_id().unwrap();
    let batch = exclusive.reserve_waiting(10).unwrap();
    let mut lane = Lane::new(&shared);
    lane.next_id().unwrap();
    let keeper = Keeper::start(kept, clock.clone()).unwrap();

    let (reader, mut writer) = std::io::pipe().unwrap();
    match fork::fork().unwrap() {
        Fork::Child => {
            drop(reader);
            let mut said = String::new();
            let mut say = |what: &str, holds: bool| said += &format!("{what}: {holds}\n");
            let forked = Err(NotNow::Refused(Refusal::Forked));
            say("the generator refuses", exclusive.try_next() == forked);
            say("its next batch is refused", exclusive.reserve(1).is_err());
            say("its old batch is empty", is_empty(batch));
            say("the shared generator refuses", shared.try_next() == forked);
            say(
                "waiting does not help",
                shared.next_id() == Err(Refusal::Forked),
            );
            say("the lane refuses", lane.try_next() == forked);
            let mut held: ReservationFile = held;
            let renewed = held.renew(held.due_us());
            say(
                "the lease is not renewed",
                matches!(renewed, Err(FileError::Forked)),
            );
            let released = held.release(exclusive.retire());
            say("nor released", matches!(released, Err(FileError::Forked)));
            let closed = keeper.close(shared.retire().unwrap());
            say(
                "the keeper is the parent's",
                matches!(closed, Err(KeeperError::Forked)),
            );
            let own = nodes.acquire(clock.fresh_us());
            say(
                "its own node is another",
                matches!(&own, Ok((own, _)) if own.node().number() == 2),
            );
            let (_own, window) = own.unwrap();
            let mut ids = Generator::new(window, clock.clone(), POLICY).unwrap();
            say("which makes IDs", ids.next_id().is_ok());
            say("the clock ticks", ticks(&clock));
            let _ = writer.write_all(said.as_bytes());
            drop(writer);
            exit(0);
        }
        Fork::Parent(child) => {
            drop(writer);
            let said: Vec<String> = BufReader::new(reader).lines().map(Result::unwrap).collect();
            fork::waitpid(child).unwrap();
            assert_eq!(said.len(), 12, "{said:#?}");
            assert!(said.iter().all(|line| line.ends_with("true")), "{said:#?}");
            // The child's end frees nothing of the parent's, and the parent goes on.
            let node = Node::new(&Layout::TWITTER, 0).unwrap();
            let now_us = clock.fresh_us();
            let again = ReservationFile::open(folder.path(), node, WINDOW_CONFIG, now_us);
            assert!(matches!(again, Err(FileError::Held { .. })), "{again:?}");
            assert_eq!(batch.count(), 10);
            exclusive.next_id().unwrap();
            lane.next_id().unwrap();
            held.release(exclusive.retire()).unwrap();
            keeper.close(shared.retire().unwrap()).unwrap();
        }
    }
}

#[test]
fn a_window_is_used_in_its_own_process_only() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_ms(1_700_000_000_000);
    let (held, window) = open(folder.path(), clock.now_us()).unwrap();
    let generator = |window| Generator::new(window, clock.clone(), ClockPolicy::Refuse).unwrap();
    let forked = Err(NotNow::Refused(Refusal::Forked));
    let child = in_child(|| {
        let mut ids = generator(window);
        let refused = ids.try_next() == forked;
        let until_us = ids.retire().until_us();
        let recorded = held.record().ended(until_us);
        format!(
            "{refused} {} {}",
            until_us == i64::MAX,
            recorded == *held.record()
        )
    });
    assert_eq!(child, "true true true");
}

/// In a tick that does not end, so that the fast path is what the child meets.
#[test]
fn fast_paths_refuse_in_a_child() {
    let window = || Window::unrecorded_ids_may_repeat(node());
    let clock = ManualClock::at_ms(1_700_000_000_000);
    let mut exclusive = Generator::new(window(), clock.clone(), ClockPolicy::Refuse).unwrap();
    let shared = SharedGenerator::new(window(), clock.clone(), ClockPolicy::Refuse).unwrap();
    let mut lane = Lane::new(&shared);
    for _ in 0..6 {
        exclusive.try_next().unwrap();
        shared.try_next().unwrap();
        lane.try_next().unwrap();
    }
    for _ in 0..6 {
        shared.try_next().unwrap();
    }
    let forked = Err(NotNow::Refused(Refusal::Forked));
    let child = in_child(|| {
        let refused = [exclusive.try_next(), shared.try_next(), lane.try_next()];
        format!("{:?}", refused.map(|outcome| outcome == forked))
    });
    assert_eq!(child, "[true, true, true]");
}

/// The fork copies the keeper's lock, which no thread releases in the child.
#[test]
fn a_keepers_failure_is_asked_for_in_a_child_without_blocking() {
    let keeper = Keeper::start(TestLease(|| Err(Slow)), SystemClock).unwrap();
    while !DROPPING.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let child = in_child(|| {
        let failure = keeper.take_failure();
        format!("{} {}", failure.is_none(), keeper.is_alive())
    });
    DROPPED.store(true, Ordering::SeqCst);
    assert_eq!(child, "true false");
    assert!(keeper.is_alive());
}

static DROPPING: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicBool = AtomicBool::new(false);

/// A failure that stays in the keeper's lock while it is replaced.
#[derive(Debug)]
struct Slow;

impl Drop for Slow {
    fn drop(&mut self) {
        DROPPING.store(true, Ordering::SeqCst);
        while !DROPPED.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slow")
    }
}

impl Error for Slow {}

/// What that says in a forked process, which is given 10 s.
fn in_child(say: impl FnOnce() -> String) -> String {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    match fork::fork().unwrap() {
        Fork::Child => {
            drop(reader);
            std::thread::spawn(|| {
                std::thread::park_timeout(Duration::from_secs(10));
                exit(1);
            });
            let _ = writer.write_all(say().as_bytes());
            drop(writer);
            exit(0);
        }
        Fork::Parent(child) => {
            drop(writer);
            let mut said = String::new();
            reader.read_to_string(&mut said).unwrap();
            fork::waitpid(child).unwrap();
            said
        }
    }
}

fn is_empty(mut batch: Batch) -> bool {
    batch.len() == 0 && batch.next().is_none()
}

/// Without a reading of the exact time: by its thread, which the parent's fork left behind.
fn ticks(clock: &TickedClock) -> bool {
    let shown_us = clock.now_us();
    let until_us = SystemClock.now_us() + 10_000_000;
    while SystemClock.now_us() < until_us {
        if clock.now_us() != shown_us {
            return true;
        }
        std::thread::yield_now();
    }
    false
}
