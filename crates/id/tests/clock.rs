//! The ticked clock follows the system's, and a clock that has stopped does no lasting harm.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use driftline_id::clock::{Clock, SystemClock, TickedClock};
use driftline_id::{ClockPolicy, Generator, Layout, Node, SharedGenerator, Window};

#[test]
fn the_ticked_clock_keeps_to_the_systems() {
    let clock = TickedClock::start();
    let (begun_us, mut shown_us) = (SystemClock.now_us(), Vec::new());
    while SystemClock.now_us() < begun_us + 50_000 {
        let now_us = clock.now_us();
        let true_us = SystemClock.now_us();
        assert!(now_us <= true_us && now_us > true_us - 200_000);
        if shown_us.last() != Some(&now_us) {
            shown_us.push(now_us);
        }
        std::hint::spin_loop();
    }
    assert!(
        shown_us.len() > 5,
        "the clock's thread does not tick: {shown_us:?}"
    );
    let fresh_us = clock.fresh_us();
    assert!((begun_us..=SystemClock.now_us()).contains(&fresh_us));
}

#[test]
fn a_paused_clock_is_never_late() {
    let clock = TickedClock::start();
    clock.fresh_us();
    let mut before_us = 0;
    // On a busy machine the clock's thread needs longer until it pauses.
    let is_shown = (0..40).any(|_| {
        // Longer than the clock's thread runs for nobody.
        let until_us = SystemClock.now_us() + 1_400_000;
        while SystemClock.now_us() < until_us {
            std::thread::park_timeout(std::time::Duration::from_millis(50));
            // A look, as a keeper takes it, is no use.
            clock.exact_us();
        }
        before_us = SystemClock.now_us();
        clock.now_us() >= before_us
    });
    assert!(is_shown, "a paused clock shows what it showed last");
    let other = clock.clone();
    drop(clock);
    assert!(other.fresh_us() >= before_us);
}

#[test]
fn a_cheap_time_that_has_stopped_is_noticed() {
    let clock = Stopped::default();
    let (mut ids, shared) = pair(&clock);
    let times = |made: [u64; 2]| made.map(|id| Layout::MASTODON.time_ms(id.into()));
    assert_eq!(
        times([ids.try_next().unwrap(), shared.try_next().unwrap()]),
        [1_000; 2]
    );
    clock.fresh_us.store(5_000_000, Ordering::SeqCst);
    assert_eq!(
        times([ids.try_next().unwrap(), shared.try_next().unwrap()]),
        [5_000; 2]
    );
    // In a burst it is noticed after no more IDs than are made in a few microseconds.
    for _ in 0..3_000 {
        ids.try_next().unwrap();
        shared.try_next().unwrap();
    }
    clock.fresh_us.store(9_000_000, Ordering::SeqCst);
    let mut late = [0; 2];
    for _ in 0..2_000 {
        let made = times([ids.try_next().unwrap(), shared.try_next().unwrap()]);
        late[0] += u32::from(made[0] < 9_000);
        late[1] += u32::from(made[1] < 9_000);
    }
    assert!(late[0] <= 1_024 && late[1] <= 1_024, "{late:?}");
}

#[test]
fn the_exact_time_is_read_seldom_in_a_burst() {
    let clock = Stopped::default();
    let (mut ids, shared) = pair(&clock);
    let readings = || clock.readings.swap(0, Ordering::SeqCst);
    readings();
    for _ in 0..20_000 {
        ids.try_next().unwrap();
    }
    let exclusive = readings();
    for _ in 0..20_000 {
        shared.try_next().unwrap();
    }
    let of_shared = readings();
    assert!((20..=40).contains(&exclusive), "{exclusive}");
    assert!((20..=260).contains(&of_shared), "{of_shared}");
}

fn pair(clock: &Stopped) -> (Generator<Stopped>, SharedGenerator<Stopped>) {
    let window = || Window::unrecorded_ids_may_repeat(Node::new(&Layout::MASTODON, 0).unwrap());
    let policy = ClockPolicy::Refuse;
    let exclusive = Generator::new(window(), clock.clone(), policy).unwrap();
    (
        exclusive,
        SharedGenerator::new(window(), clock.clone(), policy).unwrap(),
    )
}

/// Shows one time, though it knows better.
#[derive(Clone)]
struct Stopped {
    fresh_us: Arc<AtomicI64>,
    shown_us: Arc<AtomicI64>,
    readings: Arc<AtomicU64>,
}

impl Default for Stopped {
    fn default() -> Self {
        Self {
            fresh_us: Arc::new(AtomicI64::new(1_000_000)),
            shown_us: Arc::new(AtomicI64::new(1_000_000)),
            readings: Arc::default(),
        }
    }
}

impl Clock for Stopped {
    fn now_us(&self) -> i64 {
        self.shown_us.load(Ordering::SeqCst)
    }

    fn fresh_us(&self) -> i64 {
        self.readings.fetch_add(1, Ordering::SeqCst);
        let now_us = self.fresh_us.load(Ordering::SeqCst);
        self.shown_us.store(now_us, Ordering::SeqCst);
        now_us
    }
}
