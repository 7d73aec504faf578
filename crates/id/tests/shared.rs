//! One generator for several threads, on a real clock.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::thread;

use driftline_id::clock::{Clock, ManualClock, SystemClock, TickedClock};
use driftline_id::{
    ClockPolicy, Field, Lane, Layout, Node, NotNow, Refusal, SharedGenerator, TimeUnit, Window,
};

const THREADS: usize = 4;

#[test]
fn threads_of_every_kind_mix_without_repeating() {
    let ids = shared(Layout::SONYFLAKE, TickedClock::start());
    let wide = shared(Layout::MASTODON, TickedClock::start());
    for (ids, times) in [(&ids, 100), (&wide, 20_000)] {
        let each = |thread: usize| {
            let mut lane = Lane::new(ids);
            let mut made = Vec::new();
            while made.len() < times {
                match thread {
                    0 => made.push(ids.next_id().unwrap()),
                    1 => made.extend(ids.reserve_waiting(7).unwrap()),
                    _ => made.push(lane.next_id().unwrap()),
                }
            }
            assert!(made.is_sorted_by(|a, b| a < b));
            made.truncate(times);
            made
        };
        assert_all_differ(run(&each), THREADS * times);
    }
}

#[test]
fn lanes_leave_their_tick_behind() {
    let clock = ManualClock::at_ms(1_700_000_000_000);
    let ids = Arc::new(shared(Layout::TWITTER, clock.clone()));
    let (mut first, mut second) = (Lane::new(Arc::clone(&ids)), Lane::new(Arc::clone(&ids)));
    let sequence = |id: u64| id & 0xfff;
    assert_eq!(sequence(first.try_next().unwrap()), 0);
    assert_eq!(sequence(second.try_next().unwrap()), 64);
    assert_eq!(sequence(first.try_next().unwrap()), 1);
    assert_eq!(sequence(ids.try_next().unwrap()), 128);
    clock.advance_us(1_000);
    let last = second.try_next().unwrap();
    assert_eq!(sequence(last), 0);
    assert_eq!(sequence(first.try_next().unwrap()), 64);
    clock.advance_us(-1_000);
    let behind = Err(NotNow::Refused(Refusal::ClockBehind { behind_ms: 1 }));
    assert_eq!(first.try_next(), behind);
    clock.advance_us(1_000);
    let retired = ids.retire().unwrap();
    clock.advance_us(1_000);
    assert!(Layout::TWITTER.time_us(last.into()) < retired.until_us());
    assert_eq!(first.try_next(), Err(NotNow::Refused(Refusal::Retired)));
}

#[test]
fn lanes_leave_ids_for_others_where_a_tick_has_few() {
    const FEW: &[Field] = &[Field::node("node", 17), Field::sequence(5)];
    let few = Layout::custom("few", TimeUnit::Millisecond, 0, 41, FEW).unwrap();
    for (layout, at_once) in [(Layout::SONYFLAKE, 4), (few, 1), (Layout::TWITTER, 64)] {
        let clock = ManualClock::at_ms(1_700_000_000_000);
        let ids = shared(layout, clock.clone());
        let mut lanes: Vec<_> = (0..16).map(|_| Lane::new(&ids)).collect();
        assert!(lanes.iter_mut().all(|lane| lane.try_next().is_ok()));
        let left = ids.reserve(usize::MAX).unwrap();
        let sequence = layout
            .fields()
            .iter()
            .find(|field| field.name() == "sequence");
        let all = 1 << sequence.unwrap().bits();
        assert_eq!(left.len(), all - 16 * at_once);
    }
    let ids = shared(Layout::TWITTER, SystemClock);
    assert!(Lane::new(&ids).next_id().unwrap() > 0);
}

fn shared<C: Clock>(layout: Layout, clock: C) -> SharedGenerator<C> {
    let node = Node::new(&layout, 0).unwrap();
    let window = Window::unrecorded_ids_may_repeat(node);
    SharedGenerator::new(window, clock, ClockPolicy::Refuse).unwrap()
}

fn run(each: &(impl Fn(usize) -> Vec<u64> + Sync)) -> Vec<u64> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || each(n))).collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    })
}

fn assert_all_differ(mut made: Vec<u64>, expected: usize) {
    assert_eq!(made.len(), expected);
    made.sort_unstable();
    assert!(made.is_sorted_by(|a, b| a < b), "an ID was made twice");
}
