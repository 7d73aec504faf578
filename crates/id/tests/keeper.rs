//! Keepers: when their lease panics, and which clock they look at.

#![allow(clippy::unwrap_used)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driftline_id::clock::{Clock, SystemClock};
use driftline_id::file::{Keeper, KeeperError};
use driftline_id::{ClockPolicy, Generator, Window};

mod support;

use support::{TestLease, node};

#[test]
fn a_keeper_whose_lease_panicked_is_not_alive() {
    let lease = TestLease(|| -> Result<(), fmt::Error> { panic!("as the test wants it") });
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
    let of_lease = Arc::clone(&renewals);
    let lease = TestLease(move || {
        of_lease.fetch_add(1, Ordering::SeqCst);
        Ok::<_, fmt::Error>(())
    });
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
