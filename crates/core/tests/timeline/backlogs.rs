//! The order in which posts are stored: a backlog that takes several pages is stored as its source lists it.

use driftline_core::{
    timeline::{Backfill, Settings},
    upstream_id::Key,
};
use driftline_sim::seeds;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    harness::Harness,
    laws::{START_MS, settings},
    scenes::{post, world},
    world::{Codec, Quirks, World, WorldPost},
};

/// A burst of 70 posts and, after an outage, 200 posts: with each kind of server, and with crashes.
#[test]
fn a_backlog_is_stored_in_the_order_of_its_source() {
    seeds::run(24, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut harness = harness(seed, &mut rng);
        harness.crash_share = [0.0, 0.1][rng.random_range(0..2)];
        harness.run(BURST_MS + 20_000, Harness::assert_ledger_is_sound);
        harness.fail_share = 1.0;
        harness.run(OUTAGE_END_MS, Harness::assert_ledger_is_sound);
        harness.fail_share = 0.0;
        harness.run(END_MS, Harness::assert_ledger_is_sound);
        harness.settle(|_| ());
        assert_eq!(missed(&harness), 0);
        assert_in_order(&harness);
    });
}

/// Until the backlog is stored, neither the coverage nor the last poll moves, and the source is catching up.
#[test]
fn a_source_is_catching_up_while_it_holds_pages() {
    let mut harness = Harness::new(backlog(300), settings(), START_MS, 1);
    harness.run(START_MS + 5_000, |_| ());
    let frontier = harness.machine().ledger().frontier().cloned();
    let polls = *harness.machine().polls();
    harness.now_ms = START_MS + 60_000;
    let mut steps = 0;
    while !harness.machine().is_catching_up() {
        harness.step(START_MS + 120_000, false);
        steps += 1;
        assert!(steps < 20, "it never catches up");
    }
    while harness.machine().is_catching_up() {
        assert_eq!(harness.machine().ledger().frontier(), frontier.as_ref());
        assert_eq!(*harness.machine().polls(), polls);
        assert!(!harness.machine().is_settled(&harness.settings, START_MS, 1));
        harness.step(START_MS + 120_000, false);
    }
    assert!(harness.machine().ledger().frontier() > frontier.as_ref());
    assert_eq!(missed(&harness), 0);
    assert_in_order(&harness);
}

/// A request that fails is sent again, and what was read before is kept.
#[test]
fn a_failed_request_does_not_end_a_backlog() {
    for knows_min_id in [true, false] {
        let mut harness = catching_up(knows_min_id);
        harness.fail_share = 1.0;
        let before = harness.requests;
        for _ in 0..20 {
            if harness.requests == before {
                harness.step(START_MS + 120_000, false);
            }
        }
        harness.fail_share = 0.0;
        harness.run(START_MS + 70_000, |_| ());
        assert!(harness.machine().counters().failures > 0);
        assert_eq!(missed(&harness), 0);
        assert_in_order(&harness);
    }
}

/// A backlog beyond the bounds is not waited for: its newest page is stored, and the gap below is filled later.
#[test]
fn a_backlog_beyond_the_bounds_leaves_a_gap_below_the_newest_page() {
    for knows_min_id in [true, false] {
        let mut harness = Harness::new(backlog(2_000), settings(), START_MS, 1);
        harness.world.knows_min_id = knows_min_id;
        harness.run(START_MS + 5_000, |_| ());
        harness.now_ms = START_MS + 60_000;
        harness.run(START_MS + 75_000, |_| ());
        let newest = harness.world.posts.last().map(|post| harness.key(post.id));
        let is_stored = |key: &Key| harness.stored.contains_key(key);
        assert!(newest.as_ref().is_some_and(is_stored), "within 15 s");
        harness.run(START_MS + 120_000, |_| ());
        assert_eq!(missed(&harness), 0);
    }
}

/// A backlog that was too long is over once a poll meets what is stored, also if that poll shows nothing new.
#[test]
fn a_backlog_after_one_that_was_too_long_is_held() {
    for knows_min_id in [true, false] {
        let mut world = backlog(2_000);
        world.knows_min_id = knows_min_id;
        let burst_ms = START_MS + 300_000;
        let burst = (0..200).map(|n| post(burst_ms, 2_000 + n, burst_ms));
        world.posts.extend(burst);
        let mut harness = Harness::new(world, settings(), START_MS, 1);
        harness.run(START_MS + 5_000, |_| ());
        harness.now_ms = START_MS + 60_000;
        harness.run(burst_ms - 1_000, |_| ());
        let before = harness.order.len();
        harness.run(burst_ms + 60_000, |_| ());
        assert_eq!(missed(&harness), 0);
        let burst = &harness.order[before..];
        assert!(burst.is_sorted(), "the burst is stored in another order");
        assert_eq!(burst.len(), 200);
    }
}

/// Pages that would take too much memory are not held.
#[test]
fn pages_are_not_held_without_room() {
    let mut harness = Harness::new(backlog(300), settings(), START_MS, 1);
    harness.max_held_bytes = 1;
    harness.run(START_MS + 5_000, |_| ());
    harness.now_ms = START_MS + 60_000;
    harness.run(START_MS + 62_000, |_| ());
    let newest = harness.world.posts.last().map(|post| harness.key(post.id));
    let place = harness
        .order
        .iter()
        .position(|key| Some(key) == newest.as_ref());
    assert!(place.is_some_and(|place| place + 1 < harness.order.len()));
    harness.run(START_MS + 120_000, |_| ());
    assert_eq!(missed(&harness), 0);
}

/// Other sources may have taken the room since the first page was held.
#[test]
fn held_pages_are_stored_once_there_is_no_room_any_more() {
    let mut harness = catching_up(true);
    harness.max_held_bytes = 1;
    harness.step(START_MS + 120_000, false);
    assert!(!harness.machine().is_catching_up());
}

/// The times of held pages are wrong then, also of the one in flight: they are read again, and nothing is stored out
/// of order.
#[test]
fn a_backlog_is_read_again_after_a_step_of_the_clock() {
    for step_ms in [3_600_000, -3_600_000] {
        let mut harness = catching_up(false);
        harness.step_at_answer_ms = Some(step_ms);
        harness.run(START_MS + 75_000, |_| ());
        assert_eq!(missed(&harness), 0);
        assert_in_order(&harness);
    }
}

/// A source that has more news at each poll than a page, as fast as its requests may follow each other.
#[test]
fn second_looks_are_taken_although_each_poll_is_a_backlog() {
    let posts = (0..6_000).map(|n| post(START_MS + n * 33, n as u64, START_MS + n * 33));
    let settings = Settings {
        every_ms: 2_000,
        spacing_ms: 1_000,
        ..settings()
    };
    let mut harness = Harness::new(world(posts.collect()), settings, START_MS, 1);
    harness.run(START_MS + 150_000, |_| ());
    let second_looks = harness.machine().rung_stats().first();
    assert!(second_looks.is_some_and(|stats| stats.looks > 0));
}

/// A source that holds the first page of a backlog of 300 posts.
fn catching_up(knows_min_id: bool) -> Harness {
    let mut harness = Harness::new(backlog(300), settings(), START_MS, 1);
    harness.world.knows_min_id = knows_min_id;
    harness.run(START_MS + 5_000, |_| ());
    harness.now_ms = START_MS + 60_000;
    for _ in 0..20 {
        if !harness.machine().is_catching_up() {
            harness.step(START_MS + 120_000, false);
        }
    }
    assert!(harness.machine().is_catching_up());
    harness
}

/// How many posts are missed, of those since the source was added.
fn missed(harness: &Harness) -> usize {
    let is_live = |post: &&&WorldPost| post.visible_at_ms >= START_MS;
    harness.missed().iter().filter(is_live).count()
}

fn assert_in_order(harness: &Harness) {
    let place = |key: &Key| match harness.world.quirks.orders_by_second {
        // Posts of one second are in any order.
        true => harness
            .machine()
            .scheme()
            .and_then(|scheme| scheme.time_ms(key)),
        false => None,
    };
    // Pages may show posts of before as well.
    let is_live = |post: &&WorldPost| post.visible_at_ms >= START_MS;
    let first = harness.world.posts.iter().find(is_live);
    let first = first.map_or_else(Key::lowest, |post| harness.key(post.id));
    let live = harness.order.iter().filter(|key| **key >= first);
    let live: Vec<&Key> = live.collect();
    let falls = live
        .windows(2)
        .find(|pair| match (place(pair[0]), place(pair[1])) {
            (Some(first), Some(next)) => first / 1_000 > next / 1_000,
            _ => pair[0] > pair[1],
        });
    assert_eq!(falls, None, "stored in another order than listed");
}

fn harness(seed: u64, rng: &mut impl Rng) -> Harness {
    let mut posts: Vec<WorldPost> = Vec::new();
    let mut at = |ms: i64| {
        let sequence = posts.len() as u64;
        posts.push(post(ms, sequence, ms));
    };
    (0..100).for_each(|n| at(START_MS - 100_000 + n * 1_000));
    (0..20).for_each(|n| at(START_MS + n * 1_000));
    (0..70).for_each(|n| at(BURST_MS + n * 5));
    (0..200).for_each(|n| at(BURST_MS + 30_000 + n * 100));
    (0..30).for_each(|n| at(OUTAGE_END_MS + n * 700));
    let mut world = world(posts);
    match rng.random_range(0..4) {
        0 => {}
        1 => world.knows_min_id = false,
        2 => world.codec = [Codec::Takahe, Codec::Ulid][rng.random_range(0..2)],
        _ => {
            world.codec = Codec::Snac;
            world.knows_min_id = false;
            world.quirks = Quirks {
                orders_by_second: true,
                seeks_posts: true,
                ..Quirks::default()
            };
        }
    }
    let settings = Settings {
        backfill: Backfill::None,
        ..settings()
    };
    Harness::new(world, settings, START_MS, seed)
}

/// Posts of a minute after a quiet time.
fn backlog(count: u64) -> World {
    let before = (0..60).map(|n| post(START_MS - 60_000 + n * 1_000, n as u64, START_MS - 60_000));
    let during = (0..count).map(|n| {
        let ms = START_MS + 10_000 + (n * 45_000 / count) as i64;
        post(ms, n, ms)
    });
    world(before.chain(during).collect())
}

const BURST_MS: i64 = START_MS + 30_000;
const OUTAGE_END_MS: i64 = BURST_MS + 60_000;
const END_MS: i64 = OUTAGE_END_MS + 60_000;
