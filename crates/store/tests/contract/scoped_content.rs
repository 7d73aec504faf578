//! Posts whose servers show them differently to each token: every viewer sees what its own sources were shown.

use driftline_core::{answer::LookUp, names::audience::Audience, post::Post};
use driftline_store::{
    LocalAccountId, Owner, Store, history,
    source::LastPosts,
    timeline::{self, Viewer},
};

use crate::{
    audiences::ORIGINS,
    world::{ANN, BOB, EVERYTHING, START_MS, World, edited, hashed, on_both, post},
};

on_both!(
    an_edit_that_one_token_is_shown_changes_nothing_for_others,
    what_one_token_no_longer_finds_stays_for_others,
    a_post_that_one_token_is_shown_again_is_back_for_others_once_they_are,
    publishing_one_source_publishes_nothing_that_another_token_was_shown,
    content_that_is_for_fewer_again_is_that_of_those_who_have_it,
    a_source_that_more_may_read_shows_them_what_it_was_shown,
);

const VIEWERS: [Viewer; 4] = [
    Viewer::Anonymous,
    Viewer::Operator,
    Viewer::Account(ANN),
    Viewer::Account(BOB),
];

/// A source of the one server: read with a token of its owner's, unless it is for the world.
fn add(store: &Store, name: &str, owner: Owner, audience: Audience) -> World {
    World::with_token(store, name, ORIGINS[0], owner, audience)
}

fn public(store: &Store) -> World {
    add(store, "public", Owner::Operator, Audience::Public)
}

fn of(store: &Store, account: LocalAccountId) -> World {
    add(store, "home", Owner::Account(account), Audience::Private)
}

/// A public post as a token is shown it: with what its author quotes.
fn quoting(id: u64, secret: &str) -> Post {
    let mut post = post(id, "text");
    let quote = format!(r#""quote":{{"quoted_status":{{"id":"900","content":"{secret}"}}}}"#);
    post.raw = format!(
        "{{{quote},{}",
        post.raw.trim_start().trim_start_matches('{')
    );
    assert_eq!(hashed(post.clone()).hashes.content, post_hash(id));
    post
}

/// The hash of the post's content without quotes, which hashes leave out.
fn post_hash(id: u64) -> i64 {
    hashed(post(id, "text")).hashes.content
}

/// What each viewer is shown of the newest post of the store, by the part of its text that names it; empty where the
/// viewer sees no post.
fn shown(world: &World) -> [String; 4] {
    VIEWERS.map(|viewer| {
        let posts = world.read(move |tx| timeline::public(tx, &EVERYTHING, viewer));
        posts
            .first()
            .map_or(String::new(), |post| text_of(&post.raw))
    })
}

const TEXTS: [&str; 5] = ["for Ann", "for Bob", "to friends", "for all", "text"];

fn text_of(raw: &str) -> String {
    let found = TEXTS.iter().find(|text| raw.contains(**text));
    found.map_or(raw.to_owned(), |text| (*text).to_owned())
}

fn exported(world: &World) -> String {
    let raw = world.export().pop().expect("an entry").post.raw;
    raw.map_or(String::new(), |raw| text_of(&raw))
}

fn versions(world: &World, viewer: Viewer) -> Vec<String> {
    let posts = world.read(move |tx| timeline::public(tx, &EVERYTHING, viewer));
    let post = posts[0].post_id;
    let found = world.read(move |tx| history::versions(tx, post, viewer));
    found.iter().map(|version| text_of(&version.raw)).collect()
}

#[test]
fn what_one_token_is_shown_of_a_post_is_shown_to_its_owner_alone() {
    on_both(|store| {
        let (mut ann, mut world) = (of(store, ANN), public(store));
        // The private source has it first.
        ann.poll(vec![quoting(1, "for Ann")]);
        assert_eq!(shown(&world), ["", "", "for Ann", ""]);
        world.poll(vec![post(1, "text")]);
        assert_eq!(shown(&world), ["text", "text", "for Ann", "text"]);
        assert_eq!((&*exported(&world), &*exported(&ann)), ("text", "for Ann"));
    });
    on_both(|store| {
        let (mut ann, mut bob, mut world) = (of(store, ANN), of(store, BOB), public(store));
        // The public source has it first.
        world.poll(vec![post(1, "text")]);
        ann.poll(vec![quoting(1, "for Ann")]);
        bob.poll(vec![post(1, "text")]);
        assert_eq!(shown(&world), ["text", "text", "for Ann", "text"]);
        assert_eq!((&*exported(&world), &*exported(&ann)), ("text", "for Ann"));
        // A new count is no reason to show more.
        let mut counted = quoting(1, "for Ann");
        counted.counts.boosts = Some(7);
        ann.now_ms += 120_000;
        ann.poll(vec![counted]);
        assert_eq!(shown(&world), ["text", "text", "for Ann", "text"]);
    });
}

#[test]
fn two_tokens_are_shown_each_its_own() {
    on_both(|store| {
        let (mut ann, mut bob) = (of(store, ANN), of(store, BOB));
        ann.poll(vec![quoting(1, "for Ann")]);
        bob.poll(vec![quoting(1, "for Bob")]);
        assert_eq!(shown(&ann), ["", "", "for Ann", "for Bob"]);
        let mut world = public(store);
        world.poll(vec![post(1, "text")]);
        assert_eq!(shown(&ann), ["text", "text", "for Ann", "for Bob"]);
        // Content that the removed source was shown goes with it.
        ann.remove(LastPosts::Remove);
        assert_eq!(shown(&bob), ["text", "text", "text", "for Bob"]);
    });
    on_both(|store| {
        let (mut ann, mut bob) = (of(store, ANN), of(store, BOB));
        ann.poll(vec![quoting(1, "for Ann")]);
        bob.poll(vec![quoting(1, "for Bob")]);
        ann.remove(LastPosts::Remove);
        assert_eq!(shown(&bob), ["", "", "", "for Bob"]);
        assert_eq!(exported(&bob), "for Bob");
    });
}

fn an_edit_that_one_token_is_shown_changes_nothing_for_others(store: &Store) {
    let (mut ann, mut world) = (of(store, ANN), public(store));
    world.poll(vec![post(1, "text")]);
    ann.poll(vec![post(1, "text")]);
    ann.now_ms += 1;
    ann.poll(vec![edited(1, "to friends", START_MS + 1)]);
    assert_eq!(shown(&world), ["text", "text", "to friends", "text"]);
    for viewer in VIEWERS {
        assert!(versions(&world, viewer).is_empty(), "{viewer:?}");
    }
    world.now_ms += 2;
    world.poll(vec![edited(1, "for all", START_MS + 2)]);
    assert_eq!(shown(&world), ["for all"; 4]);
    for viewer in VIEWERS {
        assert_eq!(versions(&world, viewer), ["text"], "{viewer:?}");
    }
    // The next edit of what the token is shown keeps the one before for its owner.
    ann.now_ms += 2;
    ann.poll(vec![edited(1, "for Ann", START_MS + 3)]);
    assert_eq!(shown(&world), ["for all", "for all", "for Ann", "for all"]);
    assert_eq!(versions(&world, Viewer::Anonymous), ["text"]);
    assert_eq!(
        versions(&world, Viewer::Account(ANN)),
        ["text", "to friends"]
    );
}

fn what_one_token_no_longer_finds_stays_for_others(store: &Store) {
    let (mut ann, mut world) = (of(store, ANN), public(store));
    world.poll(vec![post(1, "text")]);
    ann.poll(vec![quoting(1, "for Ann")]);
    let gone = ann.look_up("1", LookUp::Gone);
    assert_eq!(gone.deleted + gone.left, 1, "{gone:?}");
    assert!(ann.export()[0].left_at_ms.is_some());
    assert_eq!(exported(&world), "text");
    let shown = shown(&world);
    assert_eq!((&*shown[0], &*shown[3]), ("text", "text"));
}

fn a_post_that_one_token_is_shown_again_is_back_for_others_once_they_are(store: &Store) {
    let (mut ann, mut world) = (of(store, ANN), public(store));
    world.poll(vec![post(1, "text")]);
    world.look_up("1", LookUp::Gone);
    assert_eq!(shown(&world), ["", "", "", ""]);
    ann.now_ms = world.now_ms + 1_000;
    ann.poll(vec![quoting(1, "for Ann")]);
    assert_eq!(shown(&world), ["", "", "for Ann", ""]);
    world.now_ms = ann.now_ms + 1_000;
    world.poll(vec![post(1, "text")]);
    assert_eq!(shown(&world), ["text", "text", "for Ann", "text"]);
}

fn publishing_one_source_publishes_nothing_that_another_token_was_shown(store: &Store) {
    let mut home = of(store, ANN);
    let mut list = add(store, "list", Owner::Account(ANN), Audience::Private);
    list.poll(vec![post(2, "text"), post(1, "text")]);
    home.poll(vec![quoting(1, "for Ann")]);
    list.set_audience(Audience::Public);
    let world = |world: &World| -> Vec<String> {
        let posts = world.public().into_iter();
        posts.map(|post| post.upstream_id).collect()
    };
    assert_eq!(world(&list), ["2"]);
    // Once the public source shows it, it is there.
    list.poll(vec![edited(1, "for all", START_MS + 1)]);
    assert_eq!(world(&list).len(), 2);
}

fn content_that_is_for_fewer_again_is_that_of_those_who_have_it(store: &Store) {
    let mut ann = add(store, "home", Owner::Account(ANN), Audience::Members);
    ann.poll(vec![post(1, "text")]);
    assert_eq!(shown(&ann), ["", "text", "text", "text"]);
    ann.set_audience(Audience::Private);
    let scope = ann.read(|tx| {
        Ok(tx.query("select content_scope from post", &[], |row| {
            row.i64("content_scope")
        })?)
    });
    assert_eq!(scope, [1_i64 << 50]);
    // Bob's token was shown something else, and keeps that when Ann's source goes.
    let mut bob = of(store, BOB);
    bob.poll(vec![quoting(1, "for Bob")]);
    ann.remove(LastPosts::Remove);
    assert_eq!(shown(&bob), ["", "", "", "for Bob"]);
}

fn a_source_that_more_may_read_shows_them_what_it_was_shown(store: &Store) {
    let (mut ann, mut bob) = (of(store, ANN), of(store, BOB));
    bob.poll(vec![quoting(1, "for Bob")]);
    ann.poll(vec![quoting(1, "for Ann")]);
    let set = |audience| {
        ann.set_audience(audience);
    };
    set(Audience::Members);
    assert_eq!(shown(&bob), ["", "for Ann", "for Ann", "for Bob"]);
    set(Audience::Public);
    assert_eq!(shown(&bob), ["for Ann", "for Ann", "for Ann", "for Bob"]);
    set(Audience::Private);
    assert_eq!(shown(&bob), ["", "", "for Ann", "for Bob"]);
}
