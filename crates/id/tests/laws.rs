//! Whatever the clock does, IDs rise, stay inside their window, and obey the policy.

#![allow(clippy::unwrap_used)]

use driftline_id::clock::ManualClock;
use driftline_id::window::{Record, WindowConfig};
use driftline_id::{
    ClockPolicy, Field, Generator, Layout, Node, NotNow, Refusal, SharedGenerator, TimeUnit,
    Window, WindowEnd,
};
use proptest::collection::vec;
use proptest::prelude::*;

const START_US: i64 = 1_700_000_000_000_000;

#[derive(Clone, Debug)]
enum Action {
    Next(usize),
    Reserve(usize),
    Advance(i64),
    Extend(i64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (1..40_usize).prop_map(Action::Next),
        2 => (1..40_usize).prop_map(Action::Reserve),
        4 => (0..3_000_i64).prop_map(Action::Advance),
        1 => (0..3_000_i64).prop_map(|us| Action::Advance(-us)),
        1 => (-100_000..100_000_i64).prop_map(Action::Advance),
        1 => (0..50_000_i64).prop_map(Action::Extend),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    const SMALL: &[Field] = &[Field::node("node", 19), Field::sequence(3)];
    const UPSIDE_DOWN: &[Field] = &[Field::sequence(4), Field::node("node", 18)];
    let custom = |unit, fields| Layout::custom("custom", unit, 0, 41, fields).unwrap();
    prop_oneof![
        Just(custom(TimeUnit::Millisecond, SMALL)),
        Just(custom(TimeUnit::Millisecond, UPSIDE_DOWN)),
        Just(Layout::SONYFLAKE),
        Just(Layout::TID),
        Just(Layout::TWITTER),
    ]
}

fn policy() -> impl Strategy<Value = ClockPolicy> {
    let wait = (0..100_u32).prop_map(|at_most_ms| ClockPolicy::Wait { at_most_ms });
    prop_oneof![Just(ClockPolicy::Refuse), wait]
}

/// Both kinds of generator in step; they must agree on everything.
struct Pair {
    exclusive: Generator<ManualClock>,
    shared: SharedGenerator<ManualClock>,
    ends: [WindowEnd; 2],
}

impl Pair {
    fn new(
        node: Node,
        from_us: i64,
        until_us: i64,
        clock: &ManualClock,
        policy: ClockPolicy,
    ) -> Self {
        let (window, end) = Window::recorded(node, from_us, until_us);
        let (other_window, other_end) = Window::recorded(node, from_us, until_us);
        Self {
            exclusive: Generator::new(window, clock.clone(), policy).unwrap(),
            shared: SharedGenerator::new(other_window, clock.clone(), policy).unwrap(),
            ends: [end, other_end],
        }
    }

    fn take(&mut self, length: Option<usize>) -> Result<Vec<u64>, NotNow> {
        let (ids, others) = match length {
            None => (
                self.exclusive.try_next().map(|id| vec![id]),
                self.shared.try_next().map(|id| vec![id]),
            ),
            Some(length) => (
                self.exclusive.reserve(length).map(Iterator::collect),
                self.shared.reserve(length).map(Iterator::collect),
            ),
        };
        assert_eq!(ids, others);
        ids
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn ids_rise_inside_the_window_under_any_clock(
        layout in layout(),
        policy in policy(),
        ahead_us in 0..5_000_i64,
        actions in vec(action(), 1..60),
    ) {
        let node = Node::new(&layout, 5).unwrap();
        let clock = ManualClock::at_us(START_US);
        let from_us = START_US + ahead_us;
        let mut pair = Pair::new(node, from_us, from_us + 20_000, &clock, policy);
        let mut until_us = from_us + 20_000;
        let mut now_us = START_US;
        let mut last = None;
        for action in actions {
            let lengths = match action {
                Action::Next(times) => vec![None; times],
                Action::Reserve(length) => vec![Some(length)],
                Action::Advance(us) => {
                    now_us += us;
                    clock.set_us(now_us);
                    continue;
                }
                Action::Extend(us) => {
                    until_us = until_us.max(now_us + us);
                    pair.ends.iter().for_each(|end| end.extend(now_us + us));
                    continue;
                }
            };
            for length in lengths {
                match pair.take(length) {
                    Ok(ids) => {
                        prop_assert!(ids.len() <= length.unwrap_or(1));
                        let ticks: Vec<i64> =
                            ids.iter().map(|&id| layout.time_us(id.into())).collect();
                        prop_assert!(ticks.windows(2).all(|pair| pair[0] == pair[1]));
                        for id in ids {
                            let time_us = layout.time_us(id.into());
                            prop_assert!(last < Some(id), "{last:?} then {id}");
                            prop_assert!(from_us <= time_us && time_us < until_us);
                            prop_assert!(time_us <= now_us, "borrowed from the future");
                            prop_assert!(now_us < time_us + i64::from(layout.unit().us()));
                            last = Some(id);
                        }
                    }
                    Err(not_now) => {
                        check_policy(policy, not_now, now_us);
                        let expected = expected_refusal(&layout, now_us, last, from_us, until_us);
                        if let (ClockPolicy::Refuse, NotNow::Refused(refusal)) = (policy, not_now) {
                            prop_assert_eq!(refusal, expected);
                        }
                        if let NotNow::Wait(wait) = not_now
                            && !matches!(wait.reason, Refusal::WindowEnded { .. })
                        {
                            now_us += wait.us as i64;
                            clock.set_us(now_us);
                            let after = pair.take(None);
                            let ended = matches!(
                                after,
                                Err(NotNow::Refused(Refusal::WindowEnded { .. }))
                            ) || matches!(after, Err(NotNow::Wait(wait))
                                if matches!(wait.reason, Refusal::WindowEnded { .. }));
                            prop_assert!(ended || after.is_ok(), "{not_now:?}, then {after:?}");
                            last = after.ok().map_or(last, |ids| ids.last().copied());
                        }
                    }
                }
            }
        }
        let retired_us = pair.exclusive.retire().until_us();
        prop_assert_eq!(pair.shared.retire().unwrap().until_us(), retired_us);
        if let Some(last) = last {
            prop_assert!(layout.time_us(last.into()) < retired_us);
        }
    }

    /// Holders of one node, one after the other, that crash or retire, with a clock that does
    /// what it likes in between: no ID twice, and the next holder's are larger.
    #[test]
    fn holders_of_one_node_never_share_a_time(
        holders in vec(
            (vec(0..3_000_i64, 1..8), -4_000..4_000_i64, any::<bool>(), vec(0..2_000_i64, 0..3)),
            1..8,
        ),
    ) {
        let layout = Layout::TWITTER;
        let node = Node::new(&layout, 5).unwrap();
        let config = WindowConfig { length_ms: 20, max_clock_skew_ms: 1_000 };
        let clock = ManualClock::at_us(START_US);
        let mut now_us = START_US;
        let mut durable: Option<Record> = None;
        let mut last = 0;
        for (advances, jump_us, retires, renewals) in holders {
            now_us += jump_us;
            clock.set_us(now_us);
            let begun = Record::begin(durable.as_ref(), &node, "here", now_us, &config);
            let mut record = begun.unwrap();
            let (window, end) = record.window(node);
            let policy = ClockPolicy::Refuse;
            let mut ids = Generator::new(window, clock.clone(), policy).unwrap();
            for us in advances {
                now_us += us;
                clock.set_us(now_us);
                while let Ok(id) = ids.try_next() {
                    prop_assert!(id > last);
                    last = id;
                    if id & 7 == 7 { break; }
                }
            }
            for us in renewals {
                now_us += us;
                if let Some(extended) = record.extended(now_us, &config) {
                    prop_assert!(extended.until_us() >= record.until_us());
                    prop_assert_eq!(extended.from_us(), record.from_us());
                    record = extended;
                    end.extend(record.until_us());
                }
                clock.set_us(now_us);
                if let Ok(id) = ids.try_next() {
                    prop_assert!(id > last);
                    last = id;
                }
            }
            let retired = ids.retire();
            let kept = if retires { record.ended(retired.until_us()) } else { record };
            let text = kept.to_string();
            prop_assert_eq!(Record::parse(&text), Ok(kept.clone()));
            prop_assert!(last == 0 || layout.time_us(last.into()) < kept.until_us());
            durable = Some(kept);
        }
    }
}

/// Why there is no ID, under a policy that waits for no clock.
fn expected_refusal(
    layout: &Layout,
    now_us: i64,
    last: Option<u64>,
    from_us: i64,
    until_us: i64,
) -> Refusal {
    let (epoch_us, unit_us) = (layout.epoch_ms() * 1_000, i64::from(layout.unit().us()));
    let first_us = from_us + (epoch_us - from_us).rem_euclid(unit_us);
    let behind_ms = |us: i64| us.abs_diff(now_us).div_ceil(1_000);
    match last.map(|id| layout.time_us(id.into())) {
        Some(last_us) if last_us > now_us => Refusal::ClockBehind {
            behind_ms: behind_ms(last_us),
        },
        None if first_us > now_us => Refusal::WindowAhead {
            behind_ms: behind_ms(first_us),
        },
        _ => Refusal::WindowEnded { until_us },
    }
}

fn check_policy(policy: ClockPolicy, not_now: NotNow, now_us: i64) {
    match (policy, not_now) {
        (_, NotNow::Wait(wait)) if wait.refusal().is_none() => {
            assert!(wait.us > 0 && wait.us <= 10_000, "at {now_us}: {wait:?}");
        }
        (ClockPolicy::Refuse, NotNow::Wait(wait)) => {
            assert!(matches!(wait.reason, Refusal::WindowAhead { .. }));
            assert!(
                wait.us <= 10_000,
                "more than a tick is no policy's: {wait:?}"
            );
        }
        (ClockPolicy::Wait { at_most_ms }, NotNow::Wait(wait)) => {
            let first_tick = matches!(wait.reason, Refusal::WindowAhead { .. });
            let bound_us = u64::from(at_most_ms) * 1_000;
            assert!(wait.us <= bound_us || first_tick && wait.us <= 10_000);
        }
        (ClockPolicy::Wait { at_most_ms }, NotNow::Refused(refusal)) => match refusal {
            Refusal::ClockBehind { behind_ms } | Refusal::WindowAhead { behind_ms } => {
                assert!(behind_ms + 10 >= u64::from(at_most_ms));
            }
            other => assert!(matches!(other, Refusal::WindowEnded { .. }) && at_most_ms == 0),
        },
        (ClockPolicy::Refuse, NotNow::Refused(_)) => {}
    }
}
