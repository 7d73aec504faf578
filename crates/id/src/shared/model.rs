//! Every interleaving of a few threads, by loom. Unit tests of this crate are models only: their
//! build replaces the atomics.

use std::vec::Vec;

use alloc::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use loom::thread;

use crate::clock::Clock;
use crate::{ClockPolicy, Field, Layout, Node, NotNow, Refusal, SharedGenerator, TimeUnit, Window};

#[test]
fn ids_are_unique_and_rise_while_a_tick_ends() {
    // Three threads have too many interleavings for all of them: those with up to two
    // preemptions, which is where lost updates show. The other models are exhaustive.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let (ids, clock) = generator(Window::unrecorded_ids_may_repeat(node()));
        let others = [two_ids(&ids), two_ids(&ids)];
        clock.us.store(START_US + 1_000, Ordering::SeqCst);
        let mut made = Vec::new();
        for other in others {
            let of_thread = other.join().unwrap();
            assert!(of_thread.is_sorted_by(|a, b| a < b), "{of_thread:?}");
            made.extend(of_thread);
        }
        made.extend(ids.try_next());
        assert_unique(&mut made);
        let is_of_the_time = |id: &u64| {
            let time_us = TIGHT.time_us((*id).into());
            (START_US..=START_US + 1_000).contains(&time_us)
        };
        assert!(made.iter().all(is_of_the_time));
    });
}

#[test]
fn ids_sent_to_another_thread_are_smaller_than_its_next() {
    loom::model(|| {
        let (ids, clock) = generator(Window::unrecorded_ids_may_repeat(node()));
        let sent = Arc::new(AtomicU64::new(0));
        let sender = {
            let (ids, sent) = (Arc::clone(&ids), Arc::clone(&sent));
            thread::spawn(move || sent.store(ids.try_next().unwrap(), Ordering::Release))
        };
        clock.us.store(START_US + 1_000, Ordering::SeqCst);
        let received = sent.load(Ordering::Acquire);
        assert!(ids.try_next().unwrap() > received);
        sender.join().unwrap();
    });
}

#[test]
fn nothing_comes_after_retirement() {
    loom::model(|| {
        let (ids, clock) = generator(Window::unrecorded_ids_may_repeat(node()));
        let other = two_ids(&ids);
        clock.us.store(START_US + 1_000, Ordering::SeqCst);
        let retired = ids.retire().unwrap();
        let refused = Err(NotNow::Refused(Refusal::Retired));
        assert_eq!(ids.try_next(), refused);
        let made = other.join().unwrap();
        assert!(
            made.iter()
                .all(|&id| TIGHT.time_us(id.into()) < retired.until_us())
        );
        assert!(ids.retire().is_none());
        assert_eq!(ids.try_next(), refused);
    });
}

#[test]
fn ids_stay_inside_a_window_while_it_is_extended() {
    loom::model(|| {
        let (window, end) = Window::recorded(node(), START_US, START_US + 1_000);
        let (ids, clock) = generator(window);
        let other = two_ids(&ids);
        clock.us.store(START_US + 1_000, Ordering::SeqCst);
        let before = ids.try_next();
        end.extend(START_US + 2_000);
        let after = ids.try_next();
        let mut made = other.join().unwrap();
        let extended = |made: &[u64]| {
            let is_late = |id: &&u64| TIGHT.time_us((**id).into()) >= START_US + 1_000;
            made.iter().filter(is_late).count()
        };
        assert_eq!(before, Err(NotNow::Refused(ENDED)));
        let late_of_other = extended(&made);
        // The next tick has two IDs.
        assert!(after.is_ok() || late_of_other == 2);
        made.extend(after);
        assert_unique(&mut made);
    });
}

/// A thread that makes up to two IDs.
fn two_ids(ids: &Arc<SharedGenerator<LoomClock>>) -> thread::JoinHandle<Vec<u64>> {
    let ids = Arc::clone(ids);
    thread::spawn(move || (0..2).filter_map(|_| ids.try_next().ok()).collect())
}

fn generator(window: Window) -> (Arc<SharedGenerator<LoomClock>>, LoomClock) {
    let clock = LoomClock {
        us: Arc::new(AtomicI64::new(START_US)),
    };
    let ids = SharedGenerator::new(window, clock.clone(), ClockPolicy::Refuse).unwrap();
    (Arc::new(ids), clock)
}

fn node() -> Node {
    Node::new(&TIGHT, 5).unwrap()
}

fn assert_unique(made: &mut Vec<u64>) {
    made.sort_unstable();
    assert!(made.is_sorted_by(|a, b| a < b), "repeated: {made:?}");
}

#[derive(Clone)]
struct LoomClock {
    us: Arc<AtomicI64>,
}

impl Clock for LoomClock {
    fn now_us(&self) -> i64 {
        self.us.load(Ordering::SeqCst)
    }
}

const START_US: i64 = 1_000_000;
const ENDED: Refusal = Refusal::WindowEnded {
    until_us: START_US + 1_000,
};

/// Two IDs a tick, so that ticks run out.
const TIGHT: Layout = match Layout::custom(
    "tight",
    TimeUnit::Millisecond,
    0,
    41,
    &[Field::node("node", 21), Field::sequence(1)],
) {
    Ok(layout) => layout,
    Err(_) => panic!("63 bits"),
};
