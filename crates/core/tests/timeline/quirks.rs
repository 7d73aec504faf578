//! Law 1 under servers that depart from the documents.

use driftline_core::{
    answer::{AnswerHeaders, FailureKind, Page},
    timeline::{Honoured, Reading, Unprovable},
};
use driftline_sim::seeds;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    harness::Harness,
    laws::{START_MS, settings, world_config},
    world::{Bound, Codec, Quirks, World, WorldConfig, listed_at},
};

const LENGTH_MS: i64 = 120_000;

/// A server with each departure in one world of five.
fn drawn(rng: &mut ChaCha8Rng) -> Quirks {
    let bounds = [Bound::Ignored, Bound::FromTheOtherEnd];
    let bound = |rng: &mut ChaCha8Rng| match rng.random_bool(0.3) {
        true => bounds[rng.random_range(0..2)],
        false => Bound::Honoured,
    };
    let of_both = [(true, false), (false, true), (false, false)];
    Quirks {
        since_id: bound(rng),
        min_id: bound(rng),
        ignores_max_id: rng.random_bool(0.2),
        of_both: rng
            .random_bool(0.2)
            .then(|| of_both[rng.random_range(0..3)]),
        cap: rng.random_bool(0.2).then(|| rng.random_range(12..15)),
        ignores_limit: rng.random_bool(0.2),
        repeats_newest: rng.random_bool(0.2),
        repeats_page: rng.random_bool(0.2),
        pins_oldest: rng.random_bool(0.2),
        orders_by_second: rng.random_bool(0.2),
        seeks_posts: false,
    }
}

fn harness(seed: u64, quirks: impl Fn(&mut ChaCha8Rng) -> Quirks) -> Harness {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let quirks = quirks(&mut rng);
    let world_config = WorldConfig {
        length_ms: LENGTH_MS,
        ..world_config(&mut rng)
    };
    let mut world = World::random(&world_config, &mut rng);
    if quirks.orders_by_second && world.codec == Codec::Opaque {
        // How far posts are apart cannot be told there.
        world.codec = Codec::Decimal;
    }
    world.quirks = quirks;
    let mut harness = Harness::new(world, settings(), START_MS, seed);
    harness.fail_share = rng.random_range(0.0..0.1);
    harness.crash_share = rng.random_range(0.0..0.05);
    harness
}

/// Runs a world to its end, and asserts at each step that nothing is called complete that lacks a
/// post.
fn run(harness: &mut Harness) {
    let check = |harness: &Harness| {
        harness.assert_ledger_is_sound();
        let lost = harness.unaccounted();
        assert!(
            lost.is_empty(),
            "unaccounted: {lost:?} of {:?}\n{:?}\n{:?}",
            harness.machine().ledger(),
            harness.world.quirks,
            harness.machine().honoured(),
        );
    };
    harness.run(START_MS + LENGTH_MS + 20_000, check);
    // What stalls waits for more than an hour.
    let steps = std::cell::Cell::new(0_u32);
    harness.settle(|harness| {
        steps.set(steps.get() + 1);
        if steps.get().is_multiple_of(32) {
            check(harness);
        }
    });
    check(harness);
}

#[test]
fn no_departure_makes_the_ledger_claim_what_it_lacks() {
    seeds::run(12, |seed| {
        let mut harness = harness(seed, drawn);
        run(&mut harness);
        let quirks = harness.world.quirks.clone();
        let missed = harness.missed().len();
        let known = format!("{quirks:?}\n{:?}", harness.machine().honoured());
        if quirks.ignores_max_id {
            // What was there before, and under an ignored `min_id` what no page showed, is listed.
            let is_bounded = harness.world.knows_min_id && quirks.min_id == Bound::Honoured;
            let says_why = harness.machine().unprovable() == Some(Unprovable::NoBounds);
            assert!(missed == 0 || is_bounded || says_why, "{missed} of {known}");
        } else if !quirks.orders_by_second {
            assert_eq!(missed, 0, "{known}\n{:?}", harness.machine().ledger());
            assert_eq!(harness.open_gaps(), 0, "{known}");
            assert_eq!(harness.unrecoverable(), 0, "{known}");
        }
    });
}

fn only(change: fn(&mut Quirks)) -> impl Fn(&mut ChaCha8Rng) -> Quirks {
    move |_| {
        let mut quirks = Quirks::default();
        change(&mut quirks);
        quirks
    }
}

/// GoToSocial and snac on the posts of an account: the same page again and again, until nothing was
/// stored any more.
#[test]
fn an_ignored_since_id_costs_pages_and_no_post() {
    seeds::run(8, |seed| {
        let mut harness = harness(seed, only(|quirks| quirks.since_id = Bound::Ignored));
        harness.world.posts.retain(|post| !post.filtered);
        run(&mut harness);
        assert!(harness.missed().is_empty());
        let honoured = harness.machine().honoured();
        assert_eq!(honoured.since_id.state, Honoured::Ignored, "{honoured:?}");
        assert_eq!(harness.machine().unprovable(), None);
        let error = harness.machine().last_error().map(|error| error.kind);
        assert_ne!(error, Some(FailureKind::WrongOrder));
    });
}

/// GoToSocial's home timeline.
#[test]
fn the_newest_post_repeated_at_the_end_of_a_page_is_no_end() {
    seeds::run(8, |seed| {
        let mut harness = harness(seed, only(|quirks| quirks.repeats_newest = true));
        run(&mut harness);
        assert!(harness.missed().is_empty());
        assert_eq!(harness.machine().honoured().disorder, None);
    });
}

/// GoToSocial's home timeline and lists: boosts that stand at the end of short pages alone.
#[test]
fn boosts_that_stand_again_at_the_end_of_a_page_are_no_other_order() {
    seeds::run(8, |seed| {
        let mut harness = harness(seed, only(|quirks| quirks.repeats_page = true));
        if harness.world.codec == Codec::Opaque {
            harness.world.codec = Codec::Ulid;
        }
        run(&mut harness);
        assert!(harness.missed().is_empty());
        let honoured = harness.machine().honoured();
        assert_eq!((honoured.precision_ms, &honoured.disorder), (0, &None));
    });
}

#[test]
fn a_server_without_bounds_is_polled_and_never_asked_for_what_it_cannot_show() {
    seeds::run(8, |seed| {
        let mut harness = harness(
            seed,
            only(|quirks| {
                quirks.ignores_max_id = true;
                quirks.min_id = Bound::Ignored;
                quirks.since_id = Bound::Ignored;
            }),
        );
        harness.world.posts.retain(|post| !post.filtered);
        run(&mut harness);
        let why = harness.machine().unprovable();
        let missed = harness.missed().len();
        assert!(
            missed == 0 || why == Some(Unprovable::NoBounds),
            "{missed} for {why:?}"
        );
        // Then nothing is asked for but polls.
        if why.is_some() {
            let (requests, from_ms) = (harness.requests, harness.now_ms);
            harness.run(from_ms + 600_000, |_| ());
            let polls = 600_000 / harness.settings.every_ms as u64;
            assert!(harness.requests - requests <= polls * 11 / 10);
        }
    });
}

/// Pages in the order of whole seconds: what is cut off at the end of a page may lie above its last
/// post.
#[test]
fn an_order_by_the_second_proves_down_to_the_second_above() {
    seeds::run(6, |seed| {
        let mut harness = harness(seed, only(|quirks| quirks.orders_by_second = true));
        harness.world.posts.retain(|post| !post.filtered);
        run(&mut harness);
        for lost in harness.missed() {
            let key = harness.key(lost.id);
            let mut gaps = harness.machine().ledger().gaps().iter();
            assert!(
                gaps.any(|gap| gap.low <= key && key < gap.high),
                "{lost:?} of {:?}",
                harness.machine().ledger()
            );
        }
    });
}

/// snac: seconds and a hash, bounds that have to be listed posts. A second of more posts than fit on a
/// page is read from post to post.
#[test]
fn bounds_that_have_to_be_posts_are_posts() {
    seeds::run(6, |seed| {
        let mut harness = harness(
            seed,
            only(|quirks| {
                quirks.orders_by_second = true;
                quirks.seeks_posts = true;
            }),
        );
        harness.world.codec = Codec::Snac;
        harness.world.knows_min_id = false;
        harness.world.posts.retain(|post| !post.filtered);
        run(&mut harness);
        let scheme = harness.machine().scheme().copied();
        assert_eq!(
            scheme.and_then(|it| it.layout).map(|it| it.name()),
            Some("snac")
        );
        let ledger = harness.machine().ledger();
        assert!(
            harness.missed().is_empty(),
            "{:?} of {ledger:?}",
            harness.missed()
        );
        assert_eq!(harness.unrecoverable(), 0, "{ledger:?}");
    });
}

/// IDs that say nothing of time: what is swapped within a second may be swapped anywhere.
#[test]
fn an_order_of_seconds_is_none_where_ids_say_nothing_of_time() {
    let reading = |apart_ms: i64| {
        let ids = ["1f", "1e", "1b", "1d", "1a", "19", "18"];
        let listed = ids.iter().enumerate().map(|(at, id)| {
            let mut listed = listed_at((*id).into());
            listed.post.created_at_ms = Some(START_MS + 500 - at as i64 * apart_ms);
            listed
        });
        let mut page = Page {
            listed: listed.collect(),
            passed: Vec::new(),
            unreadable: Vec::new(),
            headers: AnswerHeaders::default(),
        };
        Reading::check(&mut page, None, &settings())
    };
    assert!(reading(10).disorder.is_some());
    // One that stands elsewhere, as a repeated one would.
    assert_eq!(reading(2_000).disorder, None);
}
