//! Waiting for an ID: on a thread, and on a Tokio runtime.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use driftline_id::clock::{Clock, ManualClock, SystemClock};
use driftline_id::{
    ClockPolicy, Field, Generator, Lane, Layout, Node, NotNow, Refusal, SharedGenerator, TimeUnit,
    Window,
};
use tokio::time::Instant;

const NOW_MS: i64 = 1_700_000_000_000;

#[test]
fn a_blocking_call_waits_for_a_clock_as_long_as_it_may() {
    let clock = Offset::default();
    let policy = ClockPolicy::Wait { at_most_ms: 300 };
    let ids = SharedGenerator::new(open(Layout::TWITTER), clock.clone(), policy).unwrap();
    let before = ids.next_id().unwrap();
    clock.us.set_us(-50_000);
    assert!(ids.next_id().unwrap() > before);
    clock.us.set_us(-10_000_000);
    assert!(matches!(
        ids.next_id(),
        Err(Refusal::ClockBehind { behind_ms: 9_000.. })
    ));
}

#[test]
fn an_exhausted_sequence_under_a_clock_that_stands_still_is_refused() {
    let refusal = |policy, from_us: Option<i64>| {
        let clock = ManualClock::at_ms(NOW_MS);
        let node = node(Layout::TWITTER);
        let (window, _end) = match from_us {
            Some(us) => Window::recorded(node, NOW_MS * 1_000 + us, i64::MAX),
            None => Window::recorded(node, i64::MIN, i64::MAX),
        };
        let ids = SharedGenerator::new(window, clock, policy).unwrap();
        drop(ids.reserve(usize::MAX));
        let begun_us = SystemClock.now_us();
        let refused = ids.next_id().unwrap_err();
        (refused, (SystemClock.now_us() - begun_us) / 1_000)
    };
    let waited = |bounds: std::ops::Range<i64>, policy, from_us| {
        let (refused, ms) = refusal(policy, from_us);
        assert!(bounds.contains(&ms), "{ms} ms");
        refused
    };
    let exhausted = Refusal::SequenceExhausted;
    assert_eq!(waited(102..3_000, ClockPolicy::Refuse, None), exhausted);
    let short = ClockPolicy::Wait { at_most_ms: 10 };
    assert_eq!(waited(102..3_000, short, None), exhausted);
    let long = ClockPolicy::Wait { at_most_ms: 400 };
    assert_eq!(waited(400..3_000, long, None), exhausted);
    // The window begins in the next tick, which never comes.
    let ahead = Refusal::WindowAhead { behind_ms: 1 };
    assert_eq!(waited(102..3_000, ClockPolicy::Refuse, Some(500)), ahead);
}

/// A thread that never gets a tick's ID, though the clock goes on, is not refused.
#[test]
fn a_thread_that_others_outrun_waits_on() {
    const ONE: &[Field] = &[Field::node("node", 22)];
    let layout = Layout::custom("one", TimeUnit::Millisecond, 0, 41, ONE).unwrap();
    let clock = ManualClock::at_ms(NOW_MS);
    let ids = SharedGenerator::new(open(layout), clock.clone(), ClockPolicy::Refuse).unwrap();
    let take = || ids.try_next().is_ok();
    take();
    std::thread::scope(|scope| {
        let outrun = scope.spawn(|| ids.next_id());
        let until_us = SystemClock.now_us() + 400_000;
        let mut left = 0;
        while SystemClock.now_us() < until_us {
            // A whole tick: the wait that is left is always the same.
            clock.advance_us(1_000);
            left += u32::from(!take());
            std::thread::sleep(Duration::from_millis(1));
        }
        if left == 0 {
            assert!(!outrun.is_finished());
        }
        clock.advance_us(1_000);
        assert!(outrun.join().unwrap().is_ok());
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_wait_sleeps() {
    let clock = ManualClock::at_ms(NOW_MS);
    let policy = ClockPolicy::Wait { at_most_ms: 300 };
    let mut ids = Generator::new(open(Layout::TWITTER), clock.clone(), policy).unwrap();
    ids.next_id().unwrap();
    clock.advance_us(-20_000);
    let used_ns = || -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        text.split(' ').next().unwrap().parse().unwrap_or(0)
    };
    let before_ns = used_ns();
    // The clock stands still, which the policy bears for its 300 ms.
    assert_eq!(ids.next_id(), Err(Refusal::ClockBehind { behind_ms: 20 }));
    assert!(used_ns() - before_ns < 100_000_000);
}

#[test]
fn a_window_is_waited_for_until_it_is_extended() {
    let now_us = SystemClock.now_us();
    let (window, end) = Window::recorded(node(Layout::TWITTER), now_us, now_us + 2_000);
    let policy = ClockPolicy::Wait { at_most_ms: 10_000 };
    let ids = SharedGenerator::new(window, SystemClock, policy).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            std::iter::repeat_with(|| ids.next_id().unwrap())
                .find(|&id| Layout::TWITTER.time_us(id.into()) >= now_us + 2_000)
        });
        let is_ended = || {
            let reason = ids.try_next().err();
            matches!(reason, Some(NotNow::Wait(wait))
                if matches!(wait.reason, Refusal::WindowEnded { .. }))
        };
        while !is_ended() {
            std::hint::spin_loop();
        }
        end.extend(now_us + 60_000_000);
        assert!(waiter.join().unwrap().is_some());
    });
}

#[test]
fn a_deadline_ends_a_wait() {
    runtime().block_on(async {
        let clock = ManualClock::at_ms(NOW_MS);
        let policy = ClockPolicy::Wait { at_most_ms: 1_000 };
        let ids = SharedGenerator::new(open(Layout::TWITTER), clock.clone(), policy).unwrap();
        let soon = || Instant::now() + Duration::from_millis(45);
        let first = ids.next_before(soon()).await.unwrap();
        clock.advance_us(-500_000);
        let begun = Instant::now();
        let late = ids.next_before(soon()).await.unwrap_err();
        assert!(matches!(late, NotNow::Wait(wait) if wait.us == 500_000));
        assert_eq!(begun.elapsed(), Duration::from_millis(45));
        clock.advance_us(-600_000);
        let refusal = Refusal::ClockBehind { behind_ms: 1_100 };
        let refused = ids.next_before(soon()).await;
        assert_eq!(refused, Err(NotNow::Refused(refusal)));
        clock.advance_us(1_100_000);
        assert_eq!(ids.next_before(soon()).await, Ok(first + 1));
        // A deadline that is over does not keep back what is there.
        assert_eq!(ids.next_before(begun).await, Ok(first + 2));
        assert_eq!(ids.reserve_before(5, soon()).await.unwrap().len(), 5);
    });
}

#[test]
fn a_cancelled_wait_takes_nothing() {
    runtime().block_on(async {
        let clock = ManualClock::at_ms(NOW_MS);
        let policy = ClockPolicy::Refuse;
        let mut ids = Generator::new(open(Layout::TWITTER), clock.clone(), policy).unwrap();
        let last = ids.reserve(usize::MAX).unwrap().last().unwrap();
        for _ in 0..3 {
            let mut wait = Box::pin(ids.next_before(Instant::now() + Duration::from_secs(1)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(wait.as_mut().poll(&mut context).is_pending());
        }
        clock.advance_us(1_000);
        let next = ids.next_before(Instant::now()).await.unwrap();
        assert_eq!(next, ((last >> 22) + 1) << 22);
    });
}

/// Tokio's timer, of 1 ms, is not asked: its virtual time stands still.
#[test]
fn ticks_shorter_than_the_timer_are_not_slept_away() {
    runtime().block_on(async {
        let clock = Counting(ManualClock::at_ms(NOW_MS));
        let ids = SharedGenerator::new(open(Layout::TID), clock, ClockPolicy::Refuse).unwrap();
        let mut lane = Lane::new(&ids);
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(10);
        let mut last = 0;
        for _ in 0..500 {
            for id in [
                ids.next_before(deadline).await.unwrap(),
                lane.next_before(deadline).await.unwrap(),
            ] {
                assert!(id > last);
                last = id;
            }
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    });
}

/// Turns are given up only so often: the timer moves on, and the deadline comes.
#[test]
fn a_short_wait_under_a_clock_that_stands_still_ends_at_its_deadline() {
    runtime().block_on(async {
        let clock = ManualClock::at_us(NOW_MS * 1_000 + 990);
        let ids = SharedGenerator::new(open(Layout::TWITTER), clock, ClockPolicy::Refuse).unwrap();
        drop(ids.reserve(usize::MAX));
        let begun = Instant::now();
        let late = ids.next_before(begun + Duration::from_millis(45)).await;
        assert!(matches!(late, Err(NotNow::Wait(wait)) if wait.us == 10));
        assert_eq!(begun.elapsed(), Duration::from_millis(45));
    });
}

/// Virtual time for Tokio's timers.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

fn node(layout: Layout) -> Node {
    Node::new(&layout, 0).unwrap()
}

fn open(layout: Layout) -> Window {
    Window::unrecorded_ids_may_repeat(node(layout))
}

/// The system's time, set wrong by as much as a manual clock shows.
#[derive(Clone, Default)]
struct Offset {
    us: ManualClock,
}

impl Clock for Offset {
    fn now_us(&self) -> i64 {
        SystemClock.now_us() + self.us.now_us()
    }
}

/// Goes on by a tenth of a µs with each look.
struct Counting(ManualClock);

impl Clock for Counting {
    fn now_us(&self) -> i64 {
        self.0.advance_us(1);
        self.0.now_us() / 10
    }
}
