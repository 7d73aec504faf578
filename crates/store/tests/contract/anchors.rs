//! Anchors.

use driftline_core::{answer::LookUp, timeline::AnchorQuery, upstream_id::Key};
use driftline_store::entry;

use crate::world::{Store, World, posts};

on_both!(
    an_anchor_is_the_newest_live_entry_at_or_below_after_those_to_skip,
    an_anchor_is_drawn_by_its_rank_among_the_live_entries_of_a_range,
);

fn an_anchor_is_the_newest_live_entry_at_or_below_after_those_to_skip(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    world.poll(posts([100, 50, 9, 8, 7]));
    other.poll(posts([49]));
    world.look_up("9", LookUp::Gone);
    let anchor = |at_most: &str, skip| {
        let source = world.source;
        let query = AnchorQuery::Newest {
            at_most: Key::from_stored(at_most),
            skip,
        };
        world
            .read(move |tx| entry::anchor(tx, source, &query))
            .map(|anchor| {
                let text = |key: Key| key.as_str().to_owned();
                (text(anchor.key), anchor.before.map(text))
            })
    };
    let found = |key: &str, before: Option<&str>| Some((key.to_owned(), before.map(str::to_owned)));
    assert_eq!(anchor("00250", 0), found("00250", Some("0018")));
    assert_eq!(anchor("00249", 0), found("0018", Some("0017")));
    assert_eq!(anchor("00299", 1), found("0018", Some("0017")));
    assert_eq!(anchor("00299", 2), found("0017", None));
    assert_eq!(anchor("00299", 3), None);
    assert_eq!(anchor("", 0), None);
    assert_eq!(
        anchor(Key::highest().as_str(), 0),
        found("003100", Some("00250"))
    );
}

/// What is drawn decides what is read again: each live entry of the range is as likely as any other.
fn an_anchor_is_drawn_by_its_rank_among_the_live_entries_of_a_range(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([60, 50, 40, 30, 20, 10]));
    world.look_up("30", LookUp::Gone);
    let drawn = |low: &str, high: &str, per_million| {
        let source = world.source;
        let query = AnchorQuery::Drawn {
            low: Key::from_stored(low),
            high: Key::from_stored(high),
            per_million,
        };
        world
            .read(move |tx| entry::anchor(tx, source, &query))
            .map(|anchor| anchor.key.as_str().to_owned())
    };
    let all: Vec<_> = (0..4)
        .map(|part| drawn("00220", "00260", part * 250_000))
        .collect();
    let key = |key: &str| Some(key.to_owned());
    assert_eq!(all[0], key("00220"));
    assert_eq!(all[1], key("00220"), "three of them are there");
    assert_eq!(all[2..], [key("00240"), key("00250")]);
    assert_eq!(drawn("00220", "00260", 999_999), key("00250"));
    assert_eq!(drawn("00221", "00240", 0), None, "none is there");
}
