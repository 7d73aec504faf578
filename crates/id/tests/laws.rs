//! Whatever the clock does, IDs rise and stay inside their window: of layouts of every shape, at every
//! time of their lives, with all ways to take an ID mixed; and of one holder of a node after the other.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use driftline_id::clock::ManualClock;
use driftline_id::window::{Record, WindowConfig};
use driftline_id::{
    ClockPolicy, Field, Generator, Lane, Layout, Node, NotNow, Refusal, SequenceStart,
    SharedGenerator, TimeUnit, Wait, Window, WindowEnd,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    Next(usize),
    Reserve(usize),
    Fill(usize),
    Lane(usize),
    Advance(i64),
    /// To that part of the layout's life, in 65,535ths.
    Jump(u16),
    Extend(i64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let length = prop_oneof![0..80_usize, Just(usize::MAX >> 1), Just(usize::MAX)];
    let action = prop_oneof![
        4 => (1..30_usize).prop_map(Action::Next),
        2 => length.prop_map(Action::Reserve),
        1 => (0..20_usize).prop_map(Action::Fill),
        2 => (1..100_usize).prop_map(Action::Lane),
        3 => (-2..30_000_i64).prop_map(Action::Advance),
        1 => (-20_000..3_i64).prop_map(Action::Advance),
        1 => any::<i64>().prop_map(Action::Advance),
        1 => any::<u16>().prop_map(Action::Jump),
        1 => (-10_000..100_000_i64).prop_map(Action::Extend),
    ];
    vec(action, 1..60)
}

/// 63 bits or 64, the sequence anywhere or nowhere, from one bit of time to nothing but time, with
/// epochs from the first that there can be to the last.
fn layout() -> impl Strategy<Value = Layout> {
    let bits = (1..=63_u8, 0..=62_u8, 0..=62_u8, any::<bool>());
    let unit = prop_oneof![
        Just(TimeUnit::Microsecond),
        Just(TimeUnit::Millisecond),
        Just(TimeUnit::TenMilliseconds)
    ];
    let shape = (bits, 0..6_u8, unit, 0..5_u8, any::<i64>());
    shape.prop_filter_map(
        "its life fits",
        |((time, high, middle, full), order, unit, epoch, chance)| {
            let all = 63 + u8::from(full);
            let time = time.min(all);
            let high = high.min(all - time);
            let middle = middle.min(all - time - high);
            let low = all - time - high - middle;
            let mut fields = match order {
                0 => vec![("a", high), ("", middle), ("b", low)],
                1 => vec![("", high), ("a", middle), ("b", low)],
                2 => vec![("a", high), ("b", middle), ("", low)],
                3 => vec![("a", high + middle), ("", low)],
                4 => vec![("", all - time)],
                _ => vec![("a", all - time)],
            };
            fields.retain(|&(_, bits)| bits > 0);
            let field = |(name, bits)| match name {
                "" => Field::sequence(bits),
                name => Field::node(name, bits),
            };
            let fields: Vec<Field> = fields.into_iter().map(field).collect();
            let life_us = (1_i128 << time) * i128::from(unit.us());
            let first_ms = i128::from(i64::MIN) / 1_000;
            let last_ms = (i128::from(i64::MAX) - life_us) / 1_000;
            let epoch_ms = match epoch {
                0 => 0,
                1 => first_ms,
                2 => last_ms,
                3 => -1_000_000,
                _ => i128::from(chance) % 10_000_000_000_000,
            };
            let epoch_ms = (first_ms <= last_ms).then(|| epoch_ms.clamp(first_ms, last_ms))?;
            Layout::custom("any", unit, epoch_ms as i64, time, fields.leak()).ok()
        },
    )
}

fn start() -> impl Strategy<Value = SequenceStart> {
    let below = prop_oneof![Just(0), Just(1), 2..5_000_u64, any::<u64>()];
    let scattered =
        (any::<u64>(), below).prop_map(|(seed, below)| SequenceStart::Scattered { seed, below });
    prop_oneof![Just(SequenceStart::Zero), scattered]
}

fn policy() -> impl Strategy<Value = ClockPolicy> {
    let wait = any::<u32>().prop_map(|at_most_ms| ClockPolicy::Wait { at_most_ms });
    prop_oneof![Just(ClockPolicy::Refuse), wait]
}

/// The law of an ID.
struct Law {
    layout: Layout,
    node: Node,
    from_us: i64,
    until_us: i64,
    now_us: i64,
}

impl Law {
    fn check(&self, id: u64) {
        let (layout, raw) = (&self.layout, u128::from(id));
        assert!(layout.contains(raw));
        let time_us = layout.time_us(raw);
        assert!(self.from_us <= time_us && time_us < self.until_us && time_us <= self.now_us);
        assert!(i128::from(self.now_us) - i128::from(time_us) < i128::from(layout.unit().us()));
        let fields = layout.decode(raw).fields;
        let nodes = fields.iter().filter(|field| field.name() != "sequence");
        let number = nodes.fold(0, |number, field| {
            number << field.field.bits() | field.value as u64
        });
        assert_eq!(number, self.node.number());
    }
}

/// The wait for a tick, which ends when the clock shows it.
fn until_a_tick(id: Result<u64, NotNow>) -> Option<Wait> {
    match id {
        Err(NotNow::Wait(wait)) if !matches!(wait.reason, Refusal::WindowEnded { .. }) => {
            Some(wait)
        }
        _ => None,
    }
}

fn window(node: Node, window_us: Option<(i64, i64)>) -> (Window, WindowEnd) {
    let (from_us, until_us) = window_us.unwrap_or((i64::MIN, i64::MAX));
    Window::recorded(node, from_us, until_us)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(4_000)
    })]

    #[test]
    fn ids_of_any_layout_keep_the_laws(
        layout in layout(),
        number: u64,
        start in start(),
        policy in policy(),
        part: u16,
        window_us in prop::option::of((-50_000..50_000_i64, 0..200_000_i64)),
        actions in actions(),
    ) {
        let max = Node::max(&layout).unwrap();
        let node = Node::new(&layout, number % (u128::from(max) + 1).min(1 << 63) as u64).unwrap();
        let epoch_us = i128::from(layout.epoch_ms()) * 1_000;
        let life_us = (1_i128 << layout.time_bits()) * i128::from(layout.unit().us());
        let at = |part: u16| {
            let since_us = (life_us * i128::from(part) / 65_535).min(life_us - 1);
            (epoch_us + since_us) as i64
        };
        let begun_us = at(part);
        let clock = ManualClock::at_us(begun_us);
        let window_us = window_us.map(|(from_us, length_us)| {
            let from_us = begun_us.saturating_add(from_us);
            (from_us, from_us.saturating_add(length_us))
        });
        let (of_exclusive, end) = window(node, window_us);
        let (of_shared, other_end) = window(node, window_us);
        let mut law = Law {
            layout,
            node,
            from_us: end.until_us().min(of_shared.from_us()),
            until_us: end.until_us(),
            now_us: begun_us,
        };
        let exclusive = Generator::new(of_exclusive, clock.clone(), policy).unwrap();
        let mut exclusive = exclusive.with_sequence_start(start);
        let shared = SharedGenerator::new(of_shared, clock.clone(), policy).unwrap();
        let shared = shared.with_sequence_start(start);
        let mut lane = Lane::new(&shared);
        // The exclusive generator's last, and all of the shared one's.
        let (mut last, mut made) = (None, HashSet::new());
        // A lane takes IDs ahead: until then the two generators do the same.
        let mut in_step = true;
        for action in actions {
            let mut of_shared = Vec::new();
            match action {
                Action::Next(times) => for _ in 0..times {
                    let (mut id, mut other) = (exclusive.try_next(), shared.try_next());
                    prop_assert!(id == other || !in_step, "{id:?}, {other:?}");
                    if let Some(wait) = until_a_tick(id) {
                        law.now_us = law.now_us.saturating_add_unsigned(wait.us);
                        clock.set_us(law.now_us);
                        (id, other) = (exclusive.try_next(), shared.try_next());
                        prop_assert!(until_a_tick(id).is_none(), "{wait:?}, then {id:?}");
                    }
                    if let Ok(id) = id {
                        law.check(id);
                        prop_assert!(last < Some(id));
                        last = Some(id);
                    }
                    if let Ok(other) = other {
                        law.check(other);
                        prop_assert!(made.insert(other), "{other} was made twice");
                    }
                },
                Action::Reserve(length) => {
                    if let Ok(batch) = exclusive.reserve(length) {
                        prop_assert!((1..=length.max(1)).contains(&batch.len()));
                        let ids: Vec<u64> = batch.take(200).collect();
                        ids.iter().for_each(|&id| law.check(id));
                        prop_assert!(last < ids.first().copied());
                        last = ids.last().copied();
                    }
                    of_shared.extend(shared.reserve(length).into_iter().flatten().take(200));
                }
                Action::Fill(length) => {
                    in_step = false;
                    let mut slots = vec![0; length];
                    let filled = shared.fill(&mut slots).unwrap_or(0);
                    of_shared.extend(&slots[..filled]);
                }
                Action::Lane(times) => {
                    in_step = false;
                    of_shared.extend((0..times).flat_map(|_| lane.try_next()));
                }
                Action::Advance(us) => law.now_us = law.now_us.saturating_add(us),
                Action::Jump(part) => law.now_us = at(part),
                Action::Extend(us) => {
                    let until_us = law.now_us.saturating_add(us);
                    law.until_us = law.until_us.max(until_us);
                    end.extend(until_us);
                    other_end.extend(until_us);
                }
            }
            clock.set_us(law.now_us);
            for id in of_shared {
                law.check(id);
                prop_assert!(made.insert(id), "{id} was made twice");
            }
        }
        let until_us = exclusive.retire().until_us();
        prop_assert!(last.is_none_or(|id| layout.time_us(id.into()) < until_us));
        // The very last ID of all 64 bits retires a generator by itself.
        if let Some(retired) = shared.retire() {
            prop_assert!(made.iter().all(|&id| layout.time_us(id.into()) < retired.until_us()));
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

const START_US: i64 = 1_700_000_000_000_000;
