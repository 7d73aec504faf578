//! Earlier versions of posts, and counts over time: each viewer is shown those since a readable source had the post.

use driftline_core::{names::audience::Audience, post::Post};
use driftline_store::{
    Owner, Store, StoreError, history, is_visible, refresh::count_history, source::LastPosts,
    timeline::Viewer,
};

use crate::{
    refresh::liked,
    world::{ANN, BOB, START_MS, World, post},
};

on_both!(
    versions_that_ended_before_a_readable_source_had_the_post_are_hidden,
    a_version_that_ends_as_a_readable_source_first_shows_the_post_is_hidden,
    a_source_that_is_shared_shows_the_versions_that_it_had,
    posts_that_are_kept_without_a_source_keep_their_versions,
    counts_from_before_a_readable_source_had_the_post_are_hidden,
);

/// The viewers who may not read what Ann keeps to herself.
const OTHERS: [Viewer; 3] = [Viewer::Anonymous, Viewer::Operator, Viewer::Account(BOB)];

/// A source of the world, and a private one of Ann's without a token, so that what it shows is for the world.
fn sources(store: &Store) -> (World, World) {
    (
        World::owned(store, "public", Owner::Operator, Audience::Public),
        World::owned(store, "home", Owner::Account(ANN), Audience::Private),
    )
}

/// The texts of the post 1, in the order of its edits.
const TEXTS: [&str; 3] = ["first", "second", "third"];

/// Shows one of its texts, at a time of its own.
fn show(world: &mut World, seconds: i64, text: &str) {
    world.now_ms = START_MS + seconds * 1_000;
    let edits = (0..).zip(TEXTS).find(|(_, of)| *of == text);
    let edited_at_ms = edits.map(|(edits, _)| START_MS + edits);
    world.poll(vec![Post {
        edited_at_ms,
        ..post(1, text)
    }]);
}

/// The texts of the versions that a viewer is shown of the post 1, each with its number.
fn versions(world: &World, viewer: Viewer) -> Vec<(i64, String)> {
    let post = world.export()[0].post_id;
    let found = world.read(move |tx| history::versions(tx, post, viewer));
    let text = |raw: &str| {
        let raw: serde_json::Value = serde_json::from_str(raw).expect("JSON");
        raw["content"].as_str().expect("a text").to_owned()
    };
    let versions = found.iter();
    versions.map(|of| (of.seq, text(&of.raw))).collect()
}

fn numbered(texts: &[&str]) -> Vec<(i64, String)> {
    (1..).zip(texts.iter().map(|of| (*of).to_owned())).collect()
}

fn versions_that_ended_before_a_readable_source_had_the_post_are_hidden(store: &Store) {
    let (mut public, mut home) = sources(store);
    show(&mut home, 1, "first");
    show(&mut home, 2, "second");
    show(&mut public, 3, "second");
    for viewer in OTHERS {
        assert_eq!(versions(&public, viewer), [], "{viewer:?}");
    }
    let anns = Viewer::Account(ANN);
    assert_eq!(versions(&public, anns), numbered(&["first"]));
    show(&mut public, 4, "third");
    for viewer in OTHERS {
        assert_eq!(versions(&public, viewer), numbered(&["second"]));
    }
    assert_eq!(versions(&public, anns), numbered(&["first", "second"]));
}

fn a_version_that_ends_as_a_readable_source_first_shows_the_post_is_hidden(store: &Store) {
    let (mut public, mut home) = sources(store);
    show(&mut home, 1, "first");
    show(&mut public, 2, "second");
    for viewer in OTHERS {
        assert_eq!(versions(&public, viewer), [], "{viewer:?}");
    }
    let anns = versions(&public, Viewer::Account(ANN));
    assert_eq!(anns, numbered(&["first"]));
}

fn a_source_that_is_shared_shows_the_versions_that_it_had(store: &Store) {
    let (mut public, mut home) = sources(store);
    show(&mut home, 1, "first");
    show(&mut home, 2, "second");
    show(&mut public, 3, "second");
    home.set_audience(Audience::Public);
    for viewer in OTHERS {
        assert_eq!(versions(&public, viewer), numbered(&["first"]));
    }
}

fn posts_that_are_kept_without_a_source_keep_their_versions(store: &Store) {
    let (mut public, mut home) = sources(store);
    show(&mut public, 1, "first");
    show(&mut public, 2, "second");
    let post = public.export()[0].post_id;
    public.remove(LastPosts::Keep);
    let read = |viewer| {
        let read = store.read_blocking(move |tx| {
            let versions = history::versions(tx, post, viewer)?;
            Ok::<_, StoreError>((is_visible(tx, post, viewer)?, versions.len()))
        });
        read.expect("a read")
    };
    for viewer in OTHERS {
        assert_eq!(read(viewer), (true, 1), "{viewer:?}");
    }
    // An account's private source changes nothing for others.
    show(&mut home, 3, "second");
    for viewer in OTHERS {
        assert_eq!(read(viewer), (true, 1), "{viewer:?}");
    }
    assert_eq!(read(Viewer::Account(ANN)), (true, 1));
}

fn counts_from_before_a_readable_source_had_the_post_are_hidden(store: &Store) {
    let (mut public, mut home) = sources(store);
    let like = |world: &mut World, minutes: i64, favourites: i64| {
        world.now_ms = START_MS + minutes * 60_000;
        world.poll(vec![liked(1, favourites)]);
        world.now_ms
    };
    let first_ms = like(&mut home, 1, 5);
    let second_ms = like(&mut home, 11, 9);
    let came_ms = like(&mut public, 21, 9);
    let post = public.export()[0].post_id;
    let counts = |viewer| {
        let found = public.read(move |tx| count_history(tx, post, viewer));
        let found = found.into_iter();
        let counts = found.map(|row| (row.at_ms, row.counts.favourites.unwrap_or_default()));
        counts.collect::<Vec<_>>()
    };
    let anns = [(first_ms, 5), (second_ms, 9)];
    assert_eq!(counts(Viewer::Account(ANN)), anns);
    for viewer in OTHERS {
        assert_eq!(counts(viewer), [], "{viewer:?}");
    }
    let last_ms = like(&mut home, 31, 12);
    for viewer in OTHERS {
        assert_eq!(counts(viewer), [(came_ms, 9), (last_ms, 12)], "{viewer:?}");
    }
}
