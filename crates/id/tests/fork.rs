//! A forked process makes none of its parent's IDs, and can begin anew.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::exit;

use driftline_id::clock::{Clock, SystemClock, TickedClock};
use driftline_id::file::{FileError, Keeper, KeeperError, NodeFolder, ReservationFile};
use driftline_id::window::{Lease, LeaseStore, Terms};
use driftline_id::{
    Batch, ClockPolicy, Generator, Lane, Layout, Node, NotNow, Refusal, SharedGenerator,
};
use fork::Fork;

const TERMS: Terms = Terms {
    length_ms: 3_000,
    patience_ms: 60_000,
};
const POLICY: ClockPolicy = ClockPolicy::Wait { at_most_ms: 10_000 };

#[test]
fn a_forked_process_makes_none_of_its_parents_ids() {
    let folder = tempfile::tempdir().unwrap();
    let clock = TickedClock::start();
    let nodes = NodeFolder::new(folder.path(), Layout::TWITTER, TERMS);
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
            let again = ReservationFile::open(folder.path(), node, TERMS, now_us);
            assert!(matches!(again, Err(FileError::Held { .. })), "{again:?}");
            assert_eq!(batch.count(), 10);
            exclusive.next_id().unwrap();
            lane.next_id().unwrap();
            held.release(exclusive.retire()).unwrap();
            keeper.close(shared.retire().unwrap()).unwrap();
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
