//! Keepers: when their lease panics, and which clock they look at.

#![allow(clippy::unwrap_used)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driftline_id::clock::{Clock, SystemClock};
use driftline_id::file::{Keeper, KeeperError};
use driftline_id::window::Lease;
use driftline_id::{ClockPolicy, Generator, Layout, Node, Retired, Window};

#[test]
fn a_keeper_whose_lease_panicked_is_not_alive() {
    let lease = TestLease {
        node: node(),
        panics: true,
        renewals: Arc::default(),
    };
    let keeper = Keeper::start(lease, SystemClock).unwrap();
    wait_until(|| !keeper.is_alive());
    assert!(keeper.take_failure().is_none());
    let window = Window::unrecorded_ids_may_repeat(node());
    let ids = Generator::new(window, SystemClock, ClockPolicy::Refuse).unwrap();
    let closed = keeper.close(ids.retire());
    assert!(matches!(closed, Err(KeeperError::Panicked)));
}

/// Generators use `fresh_us`, and a clock that pauses without use would never pause.
#[test]
fn a_keeper_only_looks_at_its_clock() {
    let (uses, renewals) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let lease = TestLease {
        node: node(),
        panics: false,
        renewals: Arc::clone(&renewals),
    };
    let keeper = Keeper::start(lease, Used(Arc::clone(&uses))).unwrap();
    wait_until(|| renewals.load(Ordering::SeqCst) > 2);
    assert!(keeper.is_alive());
    assert_eq!(uses.load(Ordering::SeqCst), 0);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let until_us = SystemClock.now_us() + 10_000_000;
    while !is_so() {
        assert!(SystemClock.now_us() < until_us, "not in 10 s");
        std::thread::yield_now();
    }
}

fn node() -> Node {
    Node::new(&Layout::TWITTER, 5).unwrap()
}

/// Counts its uses by generators.
struct Used(Arc<AtomicU32>);

impl Clock for Used {
    fn now_us(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst);
        SystemClock.now_us()
    }

    fn exact_us(&self) -> i64 {
        SystemClock.now_us()
    }
}

struct TestLease {
    node: Node,
    panics: bool,
    renewals: Arc<AtomicU32>,
}

#[derive(Debug)]
struct Never;

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "never")
    }
}

impl std::error::Error for Never {}

impl Lease for TestLease {
    type Error = Never;

    fn node(&self) -> &Node {
        &self.node
    }

    fn fence(&self) -> u64 {
        1
    }

    fn due_us(&self) -> i64 {
        0
    }

    fn renew(&mut self, _: i64) -> Result<(), Never> {
        assert!(!self.panics, "as the test wants it");
        self.renewals.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn release(self, _: Retired) -> Result<(), Never> {
        Ok(())
    }
}
