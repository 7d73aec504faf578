//! The record of a window: what it decides, and what text it refuses.

#![allow(clippy::unwrap_used)]

use driftline_id::clock::ManualClock;
use driftline_id::window::{BeginError, Record, RecordError, WindowConfig};
use driftline_id::{ClockPolicy, Field, Generator, Layout, Node, NotNow, Refusal, TimeUnit};
use proptest::prelude::*;

mod support;

use support::{NOW_US, WINDOW_CONFIG, node};

#[test]
fn a_window_begins_at_the_end_of_the_last_or_now() {
    let first = begin(None, NOW_US).unwrap();
    assert_eq!(
        (first.from_us(), first.until_us()),
        (NOW_US, NOW_US + 3_000_000)
    );
    assert_eq!(first.fence(), 1);
    let crashed = begin(Some(&first), NOW_US + 1_000).unwrap();
    assert_eq!(crashed.from_us(), first.until_us());
    assert_eq!(crashed.until_us(), first.until_us() + 3_000_000);
    assert_eq!(crashed.fence(), 2);
    let later = begin(Some(&first), NOW_US + 10_000_000).unwrap();
    assert_eq!(later.from_us(), NOW_US + 10_000_000);
}

#[test]
fn crashes_in_a_row_keep_the_end_within_two_lengths() {
    let mut record = begin(None, NOW_US).unwrap();
    for crash in 1..2_000 {
        // As fast as a supervisor restarts.
        let now_us = NOW_US + crash * 200_000;
        let next = begin(Some(&record), now_us).unwrap();
        assert!(next.from_us() >= record.until_us());
        assert!(next.until_us() - next.from_us() >= 3_000_000 / 16);
        assert!(next.until_us() - now_us <= 6_000_000 + 3_000_000 / 16);
        record = next;
    }
    // Crashes without a pause get as much as is enough to begin with.
    for _ in 0..3 {
        let next = begin(Some(&record), record.from_us() - 6_000_000).unwrap();
        assert_eq!(next.until_us() - next.from_us(), 3_000_000 / 16);
        record = next;
    }
    // It is extended as any other.
    let until_us = record.until_us();
    let extended = record.extended(until_us, &WINDOW_CONFIG).unwrap();
    assert_eq!(extended.until_us(), until_us + 3_000_000);
}

#[test]
fn lengths_too_short_for_a_tick_are_longer() {
    for length_ms in [0, 1, WindowConfig::SHORTEST_MS] {
        let config = WindowConfig {
            length_ms,
            max_clock_skew_ms: 0,
        };
        let node = Node::new(&Layout::TWITTER, 5).unwrap();
        let record = Record::begin(None, &node, "here", NOW_US, &config).unwrap();
        assert_eq!(record.until_us(), NOW_US + 20_000);
        assert_eq!(record.due_us(&config), NOW_US + 4_000);
    }
}

#[test]
fn a_window_is_only_for_the_records_own_node() {
    let record = begin(None, NOW_US).unwrap();
    let clock = ManualClock::at_us(NOW_US);
    for (layout, number) in [(Layout::TWITTER, 6), (Layout::DISCORD, 5)] {
        let node = Node::new(&layout, number).unwrap();
        let (window, end) = record.window(node);
        assert_eq!((window.from_us(), window.until_us()), (NOW_US, NOW_US));
        end.extend(NOW_US + 1_000_000);
        let mut ids = Generator::new(window, clock.clone(), ClockPolicy::Refuse).unwrap();
        let ended = Refusal::WindowEnded { until_us: NOW_US };
        assert_eq!(ids.try_next(), Err(NotNow::Refused(ended)));
        assert!(!end.belongs_to(&ids.retire()));
    }
    let text = Refusal::WindowEnded { until_us: NOW_US }.to_string();
    assert!(text.contains("keeper must be alive"), "{text}");
}

#[test]
fn a_clock_far_behind_the_record_is_refused() {
    let first = begin(None, NOW_US).unwrap();
    let borne_us = 60_000_000;
    assert!(begin(Some(&first), NOW_US - borne_us).is_ok());
    let refused = begin(Some(&first), NOW_US - borne_us - 1);
    let until_us = first.until_us();
    assert_eq!(
        refused,
        Err(BeginError::ClockBehind {
            behind_ms: 63_000,
            until_us
        })
    );
    assert!(begin(Some(&first), i64::MIN).is_err());
}

#[test]
fn a_record_of_something_else_is_refused() {
    let record = begin(None, NOW_US).unwrap();
    let with = |layout: &Layout, number| {
        let node = Node::new(layout, number).unwrap();
        Record::begin(Some(&record), &node, "here", NOW_US, &WINDOW_CONFIG)
    };
    assert!(matches!(
        with(&Layout::DISCORD, 5),
        Err(BeginError::ForeignLayout { .. })
    ));
    // Another epoch, or other kinds of the same fields.
    const KINDS: &[Field] = &[
        Field::node("datacenter", 5),
        Field::node("worker", 5),
        Field::node("sequence", 12),
    ];
    let (unit, epoch_ms) = (TimeUnit::Millisecond, Layout::TWITTER.epoch_ms());
    let kinds = Layout::custom("twitter", unit, epoch_ms, 41, KINDS).unwrap();
    for other in [Layout::TWITTER.with_epoch(0), kinds] {
        let refused = with(&other, 5);
        assert!(matches!(refused, Err(BeginError::ForeignLayout { .. })));
    }
    let foreign = BeginError::ForeignNode {
        recorded: 5,
        wanted: 6,
    };
    assert_eq!(with(&Layout::TWITTER, 6), Err(foreign));
}

#[test]
fn a_window_is_extended_after_a_fifth_of_it() {
    let record = begin(None, NOW_US).unwrap();
    assert_eq!(record.due_us(&WINDOW_CONFIG), NOW_US + 600_000);
    assert_eq!(record.extended(NOW_US + 599_999, &WINDOW_CONFIG), None);
    let extended = record.extended(NOW_US + 600_000, &WINDOW_CONFIG).unwrap();
    assert_eq!(extended.until_us(), NOW_US + 3_600_000);
    assert_eq!(extended.from_us(), record.from_us());
    assert_eq!(extended.fence(), record.fence());
}

#[test]
fn a_window_ends_early_where_it_was_used_to_and_nowhere_else() {
    let record = begin(None, NOW_US).unwrap();
    let end = |us| record.ended(us).until_us();
    assert_eq!(end(NOW_US + 5), NOW_US + 5);
    assert_eq!(end(NOW_US - 5), NOW_US);
    assert_eq!(end(i64::MAX), record.until_us());
}

#[test]
fn a_record_is_text_of_this_form() {
    let record = begin(None, NOW_US).unwrap();
    let text = "driftline-id window 1\n\
        layout twitter epoch_ms=1288834974657 unit_us=1000 time:41 datacenter:5 worker:5 sequence:12\n\
        node 5\nfrom_us 1700000000000000\nuntil_us 1700000003000000\nfence 1\nplace here\n\
        check 3c2c8e97a6364cea\n";
    assert_eq!(record.to_string(), text);
    assert_eq!(Record::parse(text), Ok(record));
}

#[test]
fn another_version_is_told_apart_from_damage() {
    let text = begin(None, NOW_US).unwrap().to_string();
    let other = text.replace("window 1", "window 2");
    assert_eq!(Record::parse(&other), Err(RecordError::Torn));
    assert_eq!(Record::parse(&checked(&other)), Err(RecordError::Version));
    let without = text.replace("fence 1\n", "");
    assert_eq!(
        Record::parse(&checked(&without)),
        Err(RecordError::Line { name: "fence" })
    );
    let backward = text.replace("until_us 17", "until_us 16");
    assert_eq!(
        Record::parse(&checked(&backward)),
        Err(RecordError::Line { name: "until_us" })
    );
    assert_eq!(Record::parse(&checked(&text)).map(|r| r.node()), Ok(5));
}

proptest! {
    #[test]
    fn damage_is_noticed(at in any::<prop::sample::Index>(), byte: u8) {
        let text = begin(None, NOW_US).unwrap().to_string();
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let damaged = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(Record::parse(&damaged).is_ok(), damaged == text);
        prop_assert_eq!(Record::parse(&text[..at]), Err(RecordError::Torn));
    }

    #[test]
    fn no_text_panics(text in "\\PC*|(driftline-id window 1\n)?[a-z_0-9 \n-]*") {
        prop_assert!(Record::parse(&text).is_err());
        let _ = Record::parse(&checked(&text));
    }

    #[test]
    fn a_location_survives(location in "[^\n\r]*") {
        let node = Node::new(&Layout::TWITTER, 5).unwrap();
        let record = Record::begin(None, &node, &location, NOW_US, &WINDOW_CONFIG).unwrap();
        prop_assert_eq!(record.location(), &location);
        prop_assert_eq!(Record::parse(&record.to_string()), Ok(record));
    }
}

fn begin(previous: Option<&Record>, now_us: i64) -> Result<Record, BeginError> {
    Record::begin(previous, &node(), "here", now_us, &WINDOW_CONFIG)
}

/// The text with its checksum made right (FNV-1a).
fn checked(text: &str) -> String {
    let body = text.rsplit_once("\ncheck ").map_or(text, |(body, _)| body);
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{body}\ncheck {hash:016x}\n")
}
