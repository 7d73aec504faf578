//! Fixed scenes: the examples and traps, one test each.

use driftline_core::{
    answer::PageRequest,
    timeline::{Backfill, GapKind, Overlap, Settings},
    upstream_id::Key,
};

use super::{
    harness::{Harness, key},
    laws::{START_MS, settings},
    world::{Codec, Quirks, World, WorldPost},
};

pub(crate) fn post(id_ms: i64, sequence: u64, visible_at_ms: i64) -> WorldPost {
    WorldPost {
        id: ((id_ms as u64) << 16) | sequence,
        visible_at_ms,
        deleted_at_ms: None,
        filtered: false,
    }
}

/// Posts that far apart, each visible when it is written.
fn series(count: i64, from_ms: i64, apart_ms: i64) -> impl Iterator<Item = WorldPost> {
    let times = (0..count).map(move |n| (n, from_ms + n * apart_ms));
    times.map(|(n, at_ms)| post(at_ms, n as u64, at_ms))
}

/// Posts that far apart which become visible at one time.
fn shown(at_ms: i64, count: i64, from_ms: i64, apart_ms: i64) -> impl Iterator<Item = WorldPost> {
    series(count, from_ms, apart_ms).map(move |post| WorldPost {
        visible_at_ms: at_ms,
        ..post
    })
}

pub(crate) fn world(mut posts: Vec<WorldPost>) -> World {
    posts.sort_by_key(|post| post.id);
    World {
        posts,
        page_limit: 40,
        reach: None,
        knows_min_id: true,
        ignores_max_id: false,
        hides_date: false,
        names_filtered: false,
        shows_nothing: 0..0,
        codec: Codec::Decimal,
        quirks: Quirks::default(),
    }
}

/// A has the larger ID and is visible first; B follows 10 ms later with the
/// smaller ID. The poll at 35 sees A only, the poll at 1035 must bring B.
#[test]
fn the_stated_example_of_a_and_b() {
    let a = post(START_MS + 42, 0, START_MS + 30);
    let b = post(START_MS + 24, 0, START_MS + 40);
    let earlier = post(START_MS - 5_000, 0, START_MS - 5_000);
    let (a_key, b_key) = (key(a.id), key(b.id));
    let mut harness = Harness::new(
        world(vec![earlier, a, b]),
        Settings {
            overlap: Overlap::Fixed(1_000),
            ..settings()
        },
        START_MS + 20,
        1,
    );
    harness.now_ms = START_MS + 35;
    let newest_40 = PageRequest {
        limit: 40,
        ..PageRequest::default()
    };
    let page = harness.world.page(&newest_40, START_MS + 35, START_MS + 35);
    assert_eq!(page.listed.len(), 2, "A and the earlier one");
    harness.take(&page);
    assert!(harness.stored.contains_key(&a_key) && !harness.stored.contains_key(&b_key));
    harness.run(START_MS + 1_200, |_| ());
    assert!(
        harness.stored.contains_key(&b_key),
        "the next poll brings B"
    );
}

#[test]
fn an_empty_first_page_and_then_a_burst() {
    let posts = shown(START_MS + 10_010, 200, START_MS + 10_000, 1).collect();
    let mut harness = Harness::new(world(posts), settings(), START_MS, 2);
    harness.run(START_MS + 60_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 200);
    assert!(harness.machine().is_readable());
}

#[test]
fn a_post_dated_tomorrow_never_moves_the_cursor() {
    let mut posts: Vec<_> = series(60, START_MS, 1_000).collect();
    let tomorrow = post(START_MS + 86_400_000, 0, START_MS + 5_000);
    let tomorrow_key = key(tomorrow.id);
    posts.push(tomorrow);
    let mut harness = Harness::new(world(posts), settings(), START_MS, 3);
    harness.run(START_MS + 90_000, |harness| {
        harness.assert_ledger_is_sound();
        assert!(
            harness
                .machine()
                .ledger()
                .frontier()
                .is_none_or(|frontier| *frontier < tomorrow_key)
        );
    });
    assert_eq!(harness.stored.len(), 61, "it is stored all the same");
}

/// Each poll would fetch such a post again until its time comes. What is ahead is determined by the
/// server's `Date` alone: the local clock may be hours away from it.
#[test]
fn polls_leave_out_what_is_dated_ahead_whatever_the_local_clock_says() {
    const HOUR_MS: i64 = 3_600_000;
    let fetched = |ahead: usize, clock_error_ms: i64, change: fn(&mut World)| {
        let mut posts: Vec<_> = series(300, START_MS, 1_000).collect();
        for n in 0..ahead {
            posts.push(post(
                START_MS + (24 + n as i64) * HOUR_MS,
                n as u64,
                START_MS + 5_000,
            ));
        }
        let mut world = world(posts);
        change(&mut world);
        let mut harness = Harness::new(world, settings(), START_MS, 13);
        harness.clock_error_ms = clock_error_ms;
        harness.run(START_MS + 320_000, Harness::assert_ledger_is_sound);
        assert_eq!(harness.stored.len(), 300 + ahead, "{clock_error_ms}");
        harness.settle(Harness::assert_ledger_is_sound);
        assert!(harness.missed().is_empty());
        harness.fetched as i64
    };
    let none = fetched(0, 0, |_| ());
    for clock_error_ms in [0, -2 * HOUR_MS, 2 * HOUR_MS] {
        let few = fetched(5, clock_error_ms, |_| ());
        // A clock that is slow makes every poll read its whole overlap.
        assert!(few - none < 400, "{few} for {none} at {clock_error_ms} ms");
    }
    // About 300 polls, each of which fetches all of them.
    let ignored = fetched(5, 0, |world| world.ignores_max_id = true);
    assert!(ignored - none > 1_000, "{ignored} for {none}");
    let undated = fetched(5, 0, |world| world.hides_date = true);
    assert!(
        undated - none > 1_000,
        "no bound without a date: {undated} for {none}"
    );
}

/// A post 8 s late on a quiet timeline was not there 8 s ago: every empty page proved it.
#[test]
fn an_empty_page_tells_that_a_post_was_not_there() {
    let mut posts: Vec<_> = series(50, START_MS, 60_000).collect();
    posts.extend((0..10).map(|n| {
        let at_ms = START_MS + n * 300_000 + 30_000;
        post(at_ms, 100 + n as u64, at_ms + 8_000)
    }));
    let mut harness = Harness::new(world(posts), settings(), START_MS, 14);
    harness.run(START_MS + 3_000_000, Harness::assert_ledger_is_sound);
    let late_ms = harness.machine().lateness().longest_ms;
    assert!((5_000..=8_000).contains(&late_ms), "{late_ms} ms");
}

#[test]
fn a_lost_anchor_gives_way_to_an_older_one() {
    let mut posts: Vec<_> = shown(START_MS - 100_000, 100, START_MS - 100_000, 1_000).collect();
    // The newest ten vanish between polls, and a hundred come.
    for post in &mut posts[90..] {
        post.deleted_at_ms = Some(START_MS + 10_000);
    }
    posts.extend(shown(START_MS + 10_200, 100, START_MS + 10_000, 1));
    let mut harness = Harness::new(world(posts), settings(), START_MS, 5);
    harness.run(START_MS + 9_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 100);
    harness.now_ms = START_MS + 11_000;
    harness.run(START_MS + 60_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 200);
    assert_eq!(harness.open_gaps(), 0);
    assert_eq!(harness.unrecoverable(), 0);
}

/// A server answers nothing for half a minute, while its cache is cold: before the first page, or
/// on the way down. Neither is the timeline's end.
#[test]
fn a_server_that_shows_nothing_for_a_while_ends_no_history() {
    for (codec, nothing_from_ms) in [Codec::Decimal, Codec::Opaque]
        .into_iter()
        .flat_map(|codec| [0, 150, 300, 2_000].map(|from_ms| (codec, from_ms)))
    {
        let posts = shown(START_MS - 900_000, 400, START_MS - 900_000, 2_000).collect();
        let mut world = world(posts);
        world.codec = codec;
        let from_ms = START_MS + nothing_from_ms;
        world.shows_nothing = from_ms..from_ms + 30_000;
        let settings = Settings {
            id_order: Some(codec.order()),
            ..settings()
        };
        let mut harness = Harness::new(world, settings, START_MS, 21);
        harness.run(START_MS + 180_000, Harness::assert_ledger_is_sound);
        let case = format!("{codec:?} from {nothing_from_ms} ms on");
        assert_eq!(harness.stored.len(), 400, "{case}");
        assert_eq!(harness.unrecoverable(), 0, "{case}");
        // What a source shows first is history if its IDs say so.
        if codec == Codec::Decimal {
            assert_eq!(harness.machine().counters().history, 400, "{case}");
        }
    }
}

/// A burst outlasts some pages, and then the server answers nothing for two seconds. Afterwards a page that begins
/// further up is full before it comes to the gap, and says nothing of it.
#[test]
fn a_full_page_above_a_gap_does_not_say_that_the_gap_is_empty() {
    let mut posts: Vec<_> = shown(START_MS - 40_000, 20, START_MS - 40_000, 2_000).collect();
    let burst_ms = START_MS + 19_990;
    posts.extend((0..24).map(|n| post(burst_ms, 20 + n, burst_ms)));
    let mut world = world(posts);
    world.codec = Codec::Opaque;
    world.page_limit = 4;
    world.shows_nothing = START_MS + 20_120..START_MS + 22_000;
    let settings = Settings {
        id_order: Some(Codec::Opaque.order()),
        ..settings()
    };
    let mut harness = Harness::new(world, settings, START_MS, 24);
    harness.run(START_MS + 20_110, Harness::assert_ledger_is_sound);
    let gap = |harness: &Harness| harness.open_gaps() + usize::from(harness.stored.len() < 30);
    assert!(gap(&harness) > 0, "the burst is read already");
    harness.run(START_MS + 400_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 44);
    assert_eq!((harness.open_gaps(), harness.unrecoverable()), (0, 0));
}

/// Below the lowest posts nothing is shown that would say that they are missing.
#[test]
fn the_deletion_of_the_lowest_posts_is_noticed() {
    let mut posts: Vec<_> = shown(START_MS - 20_000, 10, START_MS - 20_000, 2_000).collect();
    for lowest in &mut posts[..3] {
        lowest.deleted_at_ms = Some(START_MS + 5_000);
    }
    let mut harness = Harness::new(world(posts), settings(), START_MS, 22);
    harness.run(START_MS + 200_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 10);
    let deleted = harness.stored.values().filter(|row| row.deleted).count();
    assert_eq!(deleted, 3);
}

/// More than a page in a row is filtered, in the middle: what lies below is found.
#[test]
fn a_page_that_is_filtered_as_a_whole_ends_no_history() {
    let posts = (0..400)
        .map(|n| WorldPost {
            filtered: (150..200).contains(&n),
            ..post(START_MS - 900_000 + n * 2_000, n as u64, START_MS - 900_000)
        })
        .collect();
    let mut harness = Harness::new(world(posts), settings(), START_MS, 23);
    harness.run(START_MS + 180_000, Harness::assert_ledger_is_sound);
    let missed = harness.missed().len();
    assert_eq!(missed, 0);
    assert_eq!(harness.unrecoverable(), 1, "where nothing was shown");
}

#[test]
fn what_lies_beyond_the_reach_is_recorded_with_its_bounds() {
    let mut posts: Vec<_> = shown(START_MS - 50_000, 50, START_MS - 50_000, 1_000).collect();
    // A thousand while the poller is down; only 300 can be had.
    posts.extend((0..1_000).map(|n| {
        post(
            START_MS + 20_000 + n * 10,
            n as u64,
            START_MS + 20_000 + n * 10,
        )
    }));
    let mut world = world(posts);
    world.reach = Some(300);
    let lost: Vec<Key> = world.posts[50..750]
        .iter()
        .map(|post| key(post.id))
        .collect();
    let kept: Vec<Key> = world.posts[750..].iter().map(|post| key(post.id)).collect();
    let mut harness = Harness::new(world, settings(), START_MS, 6);
    harness.run(START_MS + 10_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.stored.len(), 50);
    harness.now_ms = START_MS + 40_000;
    harness.run(START_MS + 120_000, Harness::assert_ledger_is_sound);
    assert!(kept.iter().all(|key| harness.stored.contains_key(key)));
    let gaps = harness.machine().ledger().gaps();
    let covers = |key: &Key| {
        gaps.iter()
            .any(|gap| gap.kind == GapKind::Unrecoverable && gap.low <= *key && *key < gap.high)
    };
    assert!(lost.iter().all(covers), "{gaps:?}");
    assert!(
        !kept.iter().any(covers),
        "what was had is not listed as lost: {gaps:?}"
    );
}

/// A source that does not fill gaps by itself.
fn unfilled(world: World, seed: u64) -> Harness {
    let settings = Settings {
        fill_gaps: false,
        ..settings()
    };
    Harness::new(world, settings, START_MS, seed)
}

#[test]
fn a_gap_waits_when_the_source_does_not_fill_by_itself() {
    let mut posts: Vec<_> = shown(START_MS - 10_000, 10, START_MS - 10_000, 1_000).collect();
    posts.extend(shown(START_MS + 20_200, 200, START_MS + 20_000, 1));
    let mut harness = unfilled(world(posts), 7);
    harness.run(START_MS + 30_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.open_gaps(), 1);
    assert!(harness.stored.len() < 100);
    let low = harness
        .machine()
        .ledger()
        .gaps()
        .iter()
        .find(|gap| matches!(gap.kind, GapKind::Open { .. }))
        .map(|gap| gap.low.clone())
        .unwrap();
    assert!(harness.request_fill(&low));
    harness.run(START_MS + 60_000, Harness::assert_ledger_is_sound);
    assert_eq!(harness.open_gaps(), 0);
    assert_eq!(harness.stored.len(), 210);
}

#[test]
fn history_by_count_and_by_duration_ends_where_it_was_asked_to() {
    let posts: Vec<_> = (0..1_000)
        .map(|n| {
            post(
                START_MS - 1_000_000 + n * 1_000,
                n as u64,
                START_MS - 1_000_000,
            )
        })
        .collect();
    for (backfill, expected) in [
        (Backfill::None, 40..=40),
        (Backfill::Count(100), 100..=140),
        (Backfill::Duration(500_000), 500..=540),
        (Backfill::All, 1_000..=1_000),
    ] {
        let mut harness = Harness::new(
            world(posts.clone()),
            Settings {
                backfill,
                ..settings()
            },
            START_MS,
            9,
        );
        harness.run(START_MS + 60_000, Harness::assert_ledger_is_sound);
        assert!(
            expected.contains(&harness.stored.len()),
            "{backfill:?}: {}",
            harness.stored.len()
        );
        assert!(
            harness.machine().is_readable(),
            "{backfill:?}: {:?}",
            harness.machine().ledger()
        );
        assert_eq!(harness.open_gaps(), 0, "{backfill:?}");
    }
}

/// A state that happens once: where history ends. It must not move up with later polls, or what
/// lies between two of them is in no range and no look ever reads it.
#[test]
fn the_origin_moves_up_once_where_history_ends() {
    let history = shown(START_MS, 400, START_MS - 400_000, 1_000);
    // 20 posts a second; every tenth is 3 s late.
    let live = (0..1_200).map(|n| {
        let at_ms = START_MS + n * 50;
        post(at_ms, n as u64, at_ms + if n % 10 == 0 { 3_000 } else { 0 })
    });
    let posts: Vec<_> = history.chain(live).collect();
    for backfill in [
        Backfill::None,
        Backfill::Count(10),
        Backfill::Count(40),
        Backfill::Count(200),
        Backfill::Duration(150_000),
        Backfill::All,
    ] {
        let settings = Settings {
            backfill,
            ..settings()
        };
        let mut harness = Harness::new(world(posts.clone()), settings, START_MS + 500, 12);
        harness.run(START_MS + 20_000, Harness::assert_ledger_is_sound);
        let origin = harness.machine().ledger().origin().cloned();
        harness.run(START_MS + 70_000, |harness| {
            assert_eq!(
                harness.machine().ledger().origin(),
                origin.as_ref(),
                "{backfill:?}"
            );
        });
        harness.settle(Harness::assert_ledger_is_sound);
        let lost = harness
            .missed()
            .iter()
            .filter(|lost| lost.visible_at_ms > START_MS + 500)
            .count();
        assert_eq!(lost, 0, "{backfill:?}");
    }
}

#[test]
fn a_poll_that_finds_nothing_fetches_nothing_on_a_quiet_source() {
    let posts = vec![post(START_MS - 60_000, 0, START_MS - 60_000)];
    let mut harness = Harness::new(world(posts), settings(), START_MS, 10);
    // What lies below it comes of age: until then looks ask whether nothing is there.
    let of_age_ms = START_MS + settings().rungs.last().unwrap().age_ms;
    let of_age_ms = of_age_ms + 10_000;
    harness.run(of_age_ms, |_| ());
    let before = harness.fetched;
    harness.run(of_age_ms + 300_000, |_| ());
    assert_eq!(
        harness.fetched, before,
        "the newest post is not read again and again"
    );
}

/// Of forty recorded notifications of mentions, thirty-six had lost their post.
#[test]
fn what_is_no_post_shows_how_far_a_page_reaches() {
    // A run of whole pages that name nothing looks like the timeline's end.
    for (names_filtered, stored) in [(true, 200), (false, 100)] {
        let posts = (0..400)
            .map(|n| WorldPost {
                filtered: (100..300).contains(&n),
                ..post(START_MS + n * 10, n as u64, START_MS + n * 10)
            })
            .collect();
        let world = World {
            names_filtered,
            ..world(posts)
        };
        let all = Settings {
            backfill: Backfill::All,
            ..settings()
        };
        let mut harness = Harness::new(world, all, START_MS + 10_000, 11);
        harness.run(START_MS + 100_000, Harness::assert_ledger_is_sound);
        assert_eq!(harness.stored.len(), stored);
        assert_eq!(harness.open_gaps(), 0);
    }
}
