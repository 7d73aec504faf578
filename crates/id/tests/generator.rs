//! The exclusive generator: what it makes of each layout, and what it refuses.

#![allow(clippy::unwrap_used)]

use driftline_id::clock::ManualClock;
use driftline_id::{
    ClockPolicy, Field, Generator, Layout, LayoutError, LifeWarning, Node, NodeError, NotNow,
    Refusal, SequenceStart, SharedGenerator, StartError, TimeError, TimeUnit, UnfitLayoutError,
    Wait, Window,
};

const NOW_MS: i64 = 1_700_000_000_000;
const FIT: &[Layout] = &[
    Layout::TWITTER,
    Layout::PULSATE,
    Layout::MASTODON,
    Layout::DISCORD,
    Layout::INSTAGRAM,
    Layout::SONYFLAKE,
    Layout::TID,
];

/// Singly, in batches and shared by threads: each tick has the same IDs.
#[test]
fn every_layout_of_time_node_and_sequence_is_served() {
    for layout in FIT {
        let node = Node::new(layout, Node::max(layout).unwrap()).unwrap();
        let clock = ManualClock::at_ms(NOW_MS);
        let exclusive = || Generator::new(open(node), clock.clone(), ClockPolicy::Refuse).unwrap();
        let (mut singly, mut batched) = (exclusive(), exclusive());
        let shared = SharedGenerator::new(open(node), clock.clone(), ClockPolicy::Refuse).unwrap();
        let exhausted = NotNow::Wait(Wait {
            us: layout.unit().us().into(),
            reason: Refusal::SequenceExhausted,
        });
        for tick in 0..3 {
            let mut of_batches = vec![batched.try_next().unwrap()];
            while let Ok(batch) = batched.reserve(10) {
                of_batches.extend(batch);
                of_batches.extend(batched.try_next());
            }
            for sequence in 0..sequences(layout) {
                let id = singly.try_next().unwrap();
                assert_eq!(shared.try_next(), Ok(id));
                assert_eq!(of_batches[sequence as usize], id);
                let decoded = layout.decode(id.into());
                let expected_us = NOW_MS * 1_000 + tick * i64::from(layout.unit().us());
                assert_eq!(decoded.time_us, expected_us, "{decoded:?}");
                for value in &decoded.fields {
                    let expected = match value.name() {
                        "sequence" => sequence.into(),
                        _ => value.field.max(),
                    };
                    assert_eq!(value.value, expected, "{decoded:?}");
                }
            }
            assert_eq!(of_batches.len() as u32, sequences(layout));
            assert_eq!(singly.try_next(), Err(exhausted));
            assert_eq!(shared.try_next(), Err(exhausted));
            assert_eq!(batched.reserve(1).err(), Some(exhausted));
            clock.advance_us(layout.unit().us().into());
        }
        assert_eq!(batched.reserve(0).unwrap().len(), 1);
        let all = shared.reserve(usize::MAX).unwrap();
        assert_eq!(all.len() as u32, sequences(layout));
    }
}

#[test]
fn other_layouts_are_refused() {
    const TWO: &[Field] = &[Field::sequence(10), Field::sequence(12)];
    let two = Layout::custom("two", TimeUnit::Millisecond, 0, 41, TWO).unwrap();
    for (layout, why) in [
        (Layout::TAKAHE, UnfitLayoutError::Field { field: "random" }),
        (Layout::ULID, UnfitLayoutError::Width),
        (Layout::UUIDV7, UnfitLayoutError::Width),
        (two, UnfitLayoutError::Sequences),
        (Layout::TID.with_epoch(i64::MIN), UnfitLayoutError::Life),
    ] {
        assert_eq!(Node::new(&layout, 0), Err(NodeError::Unfit(why)));
    }
}

#[test]
fn custom_layouts_are_checked() {
    const NODE: &[Field] = &[Field::node("node", 10)];
    const NODE_11: &[Field] = &[Field::node("node", 11)];
    const ALL: &[Field] = &[Field::sequence(63)];
    let custom =
        |time_bits, fields| Layout::custom("x", TimeUnit::Millisecond, 0, time_bits, fields);
    assert!(custom(53, NODE).is_ok());
    assert!(custom(53, NODE_11).is_ok());
    assert_eq!(custom(54, NODE), Err(LayoutError::Life));
    assert_eq!(custom(52, NODE), Err(LayoutError::Width { bits: 62 }));
    assert_eq!(custom(55, NODE), Err(LayoutError::Width { bits: 65 }));
    assert_eq!(custom(0, ALL), Err(LayoutError::NoTime));
    let coarse = Layout::custom("x", TimeUnit::TenMilliseconds, 0, 63, &[]);
    assert_eq!(coarse, Err(LayoutError::Life));
}

/// They become the names of files, and lines in them.
#[test]
fn custom_names_are_plain() {
    const NODE: &[Field] = &[Field::node("node", 22)];
    let named = |name| Layout::custom(name, TimeUnit::Millisecond, 0, 41, NODE).map(drop);
    const LONGEST: &str = "abcdefghijklmnopqrstuvwxyz-_0189";
    assert_eq!(LONGEST.len(), 32);
    for name in ["a", "0", "my_own-2", LONGEST] {
        assert_eq!(named(name), Ok(()));
    }
    for name in ["", "a\nb", "a/b", "../a", "a b", "Wide", "a:", "ä", "a.b"] {
        assert_eq!(named(name), Err(LayoutError::Name { name }));
    }
    let name = "abcdefghijklmnopqrstuvwxyz-_01890";
    assert_eq!(named(name), Err(LayoutError::Name { name }));
    const BAD: &[Field] = &[Field::node("no de", 22)];
    let of_field = Layout::custom("x", TimeUnit::Millisecond, 0, 41, BAD);
    assert_eq!(of_field, Err(LayoutError::Name { name: "no de" }));
}

#[test]
fn custom_fields_have_bits_and_not_too_many() {
    const NONE: &[Field] = &[Field::node("node", 0), Field::sequence(22)];
    const WIDE: &[Field] = &[Field::node("node", 200)];
    for (fields, bits) in [(NONE, 0), (WIDE, 200)] {
        let refused = Layout::custom("x", TimeUnit::Millisecond, 0, 41, fields);
        let field = "node";
        assert_eq!(refused, Err(LayoutError::FieldWidth { field, bits }));
    }
    let max = |bits| Field::node("node", bits).max();
    assert_eq!([max(0), max(1), max(63)], [0, 1, (1 << 63) - 1]);
    assert_eq!(
        [max(127), max(128), max(255)],
        [u128::MAX >> 1, u128::MAX, u128::MAX]
    );
}

#[test]
fn nodes_must_fit() {
    let layout = "twitter";
    let node = |fields: &[(&str, u64)]| Node::from_fields(&Layout::TWITTER, fields);
    let (datacenter, worker) = (("datacenter", 2), ("worker", 3));
    let found = Node::new(&Layout::TWITTER, 67);
    assert_eq!(node(&[worker, datacenter]), found);
    let (field, value, max) = ("worker", 32, 31);
    let too_large = NodeError::FieldTooLarge { field, value, max };
    assert_eq!(node(&[datacenter, (field, value)]), Err(too_large));
    let missing = NodeError::FieldMissing { field };
    assert_eq!(node(&[datacenter]), Err(missing));
    for (unknown, value) in [("sequence", 7), ("worker", 9)] {
        let error = NodeError::FieldUnknown { layout, value };
        assert_eq!(node(&[datacenter, worker, (unknown, value)]), Err(error));
    }
    for (of, number, max) in [
        (Layout::TWITTER, 1_024, 1_023),
        (Layout::MASTODON, 1, 0),
        (Layout::SONYFLAKE, u64::MAX, 65_535),
    ] {
        let layout = of.name();
        let error = NodeError::TooLarge {
            layout,
            number,
            max,
        };
        assert_eq!(Node::new(&of, number), Err(error));
    }
}

#[test]
fn a_clock_behind_is_refused_and_touches_nothing() {
    let (mut ids, clock) = twitter(ClockPolicy::Refuse);
    let shared =
        SharedGenerator::new(open(twitter_node()), clock.clone(), ClockPolicy::Refuse).unwrap();
    let before = ids.try_next().unwrap();
    assert_eq!(shared.try_next(), Ok(before));
    clock.advance_us(-5_000);
    for _ in 0..5_000 {
        let refused = Err(NotNow::Refused(Refusal::ClockBehind { behind_ms: 5 }));
        assert_eq!(ids.try_next(), refused);
        assert_eq!(shared.try_next(), refused);
    }
    clock.advance_us(5_000);
    assert_eq!(ids.try_next(), Ok(before + 1));
    assert_eq!(shared.try_next(), Ok(before + 1));
}

#[test]
fn a_bounded_wait_waits_within_its_bound() {
    let (mut ids, clock) = twitter(ClockPolicy::Wait { at_most_ms: 5 });
    ids.try_next().unwrap();
    clock.advance_us(-5_000);
    let reason = Refusal::ClockBehind { behind_ms: 5 };
    assert_eq!(
        ids.try_next(),
        Err(NotNow::Wait(Wait { us: 5_000, reason }))
    );
    clock.advance_us(-1);
    let refusal = Refusal::ClockBehind { behind_ms: 6 };
    assert_eq!(ids.try_next(), Err(NotNow::Refused(refusal)));
}

#[test]
fn times_outside_the_layouts_life_are_errors() {
    let layout = Layout::TWITTER;
    let start = |us| {
        Generator::new(
            open(twitter_node()),
            ManualClock::at_us(us),
            ClockPolicy::Refuse,
        )
    };
    let end_us = layout.end_of_life_ms() * 1_000 + 999;
    let early = layout.epoch_ms() * 1_000 - 1;
    assert!(matches!(
        start(early),
        Err(StartError::Time(TimeError::BeforeEpoch { .. }))
    ));
    assert!(matches!(
        start(end_us + 1),
        Err(StartError::Time(TimeError::PastEnd { .. }))
    ));
    assert!(start(i64::MIN).is_err() && start(i64::MAX).is_err());

    let clock = ManualClock::at_us(end_us);
    let mut ids = Generator::new(open(twitter_node()), clock.clone(), ClockPolicy::Refuse).unwrap();
    assert!(ids.try_next().is_ok());
    for outside in [end_us + 1, early] {
        clock.set_us(outside);
        let refused = ids.try_next();
        assert!(matches!(refused, Err(NotNow::Refused(Refusal::Time(_)))));
    }
}

#[test]
fn a_layout_of_all_bits_ends_without_overflow() {
    let layout = Layout::MASTODON;
    let node = Node::new(&layout, 0).unwrap();
    let clock = ManualClock::at_ms(layout.end_of_life_ms());
    let mut exclusive = Generator::new(open(node), clock.clone(), ClockPolicy::Refuse).unwrap();
    let shared = SharedGenerator::new(open(node), clock, ClockPolicy::Refuse).unwrap();
    for below in (1..=65_535).rev() {
        assert_eq!(exclusive.try_next(), Ok(u64::MAX - below));
        assert_eq!(shared.try_next(), Ok(u64::MAX - below));
    }
    for _ in 0..3 {
        assert!(matches!(exclusive.try_next(), Err(NotNow::Refused(_))));
        assert!(matches!(shared.try_next(), Err(NotNow::Refused(_))));
    }
}

#[test]
fn the_end_of_life_is_announced() {
    let year_ms = 366 * 24 * 3_600_000;
    let end_of_life_ms = Layout::TWITTER.end_of_life_ms();
    let at = |ms| Layout::TWITTER.expires_within_a_year(ms);
    assert_eq!(at(end_of_life_ms - year_ms - 1), None);
    let layout = "twitter";
    let warning = LifeWarning::Ends {
        layout,
        end_of_life_ms,
    };
    assert_eq!(at(end_of_life_ms - year_ms), Some(warning));
    let signed_limit_ms = Layout::PULSATE.signed_limit_ms().unwrap();
    let layout = "pulsate";
    let warning = LifeWarning::PassesSigned {
        layout,
        signed_limit_ms,
    };
    let found = Layout::PULSATE.expires_within_a_year(signed_limit_ms - 1);
    assert_eq!(found, Some(warning));
}

#[test]
fn a_slice_is_filled_as_far_as_the_tick_goes() {
    let (mut ids, clock) = twitter(ClockPolicy::Refuse);
    let mut slots = [0; 5_000];
    assert_eq!(ids.fill(&mut slots), Ok(4_096));
    assert!(slots[..4_096].is_sorted_by(|a, b| a < b));
    assert!(ids.fill(&mut slots).is_err());
    assert_eq!(ids.fill(&mut []), Ok(0));
    clock.advance_us(1_000);
    assert_eq!(ids.fill(&mut slots[..10]), Ok(10));
}

#[test]
fn a_scattered_start_spreads_and_never_wraps() {
    let below = 1_024;
    let start = SequenceStart::Scattered { seed: 7, below };
    let (ids, clock) = twitter(ClockPolicy::Refuse);
    let mut ids = ids.with_sequence_start(start);
    let mut seen = std::collections::HashSet::new();
    let mut last = 0;
    for _ in 0..200 {
        let all: Vec<u64> = std::iter::from_fn(|| ids.try_next().ok()).collect();
        assert!(all.is_sorted_by(|a, b| a < b) && all[0] > last);
        assert!(all[0] & 0xfff < below && all.last().unwrap() & 0xfff == 0xfff);
        seen.insert(all[0] & 0xfff);
        last = *all.last().unwrap();
        clock.advance_us(1_000);
    }
    assert!(seen.len() > 150, "{} of 200 starts differ", seen.len());
}

#[test]
fn a_window_bounds_times_on_both_sides() {
    let from_us = NOW_MS * 1_000 + 3_500;
    let (window, end) = Window::recorded(twitter_node(), from_us, from_us + 2_000);
    let clock = ManualClock::at_ms(NOW_MS);
    let mut ids = Generator::new(window, clock.clone(), ClockPolicy::Refuse).unwrap();
    assert_eq!(
        ids.try_next(),
        Err(NotNow::Refused(Refusal::WindowAhead { behind_ms: 4 }))
    );
    clock.advance_us(3_900);
    // The window begins within this tick, so the next is the first: no policy minds 100 us.
    let reason = Refusal::WindowAhead { behind_ms: 1 };
    assert_eq!(ids.try_next(), Err(NotNow::Wait(Wait { us: 100, reason })));
    clock.advance_us(100);
    let first = ids.try_next().unwrap();
    assert!(Layout::TWITTER.time_us(first.into()) >= from_us);
    clock.advance_us(2_000);
    let ended = Refusal::WindowEnded {
        until_us: from_us + 2_000,
    };
    assert_eq!(ids.try_next(), Err(NotNow::Refused(ended)));
    end.extend(from_us + 1_000);
    assert_eq!(end.until_us(), from_us + 2_000);
    end.extend(from_us + 9_000);
    assert!(ids.try_next().is_ok());
}

#[test]
fn retirement_tells_how_far_times_are_used() {
    let (mut ids, clock) = twitter(ClockPolicy::Refuse);
    clock.advance_us(700);
    ids.try_next().unwrap();
    assert_eq!(ids.retire().until_us(), NOW_MS * 1_000 + 1_000);

    let from_us = NOW_MS * 1_000;
    let (window, _) = Window::recorded(twitter_node(), from_us, from_us + 2_000);
    let unused = Generator::new(window, clock, ClockPolicy::Refuse).unwrap();
    assert_eq!(unused.retire().until_us(), from_us);
}

fn twitter(policy: ClockPolicy) -> (Generator<ManualClock>, ManualClock) {
    let clock = ManualClock::at_ms(NOW_MS);
    let ids = Generator::new(open(twitter_node()), clock.clone(), policy).unwrap();
    (ids, clock)
}

fn twitter_node() -> Node {
    Node::new(&Layout::TWITTER, 67).unwrap()
}

fn open(node: Node) -> Window {
    Window::unrecorded_ids_may_repeat(node)
}

fn sequences(layout: &Layout) -> u32 {
    let is_sequence = |field: &&Field| field.name() == "sequence";
    let bits = layout
        .fields()
        .iter()
        .find(is_sequence)
        .map_or(0, |f| f.bits());
    1 << bits
}
