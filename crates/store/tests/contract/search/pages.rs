//! Pages of a search, while posts come and between hidden posts.

use std::collections::HashSet;

use driftline_core::{names::audience::Audience, post::Post};
use driftline_store::{
    LocalId, Owner, Store,
    timeline::{Range, Viewer},
};
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

use super::{find, found, index, stretch, text};
use crate::{
    audiences::ALL,
    world::{ANN, BOB, World},
};

on_both!(
    hidden_posts_change_no_answer_and_no_cursor,
    pages_up_and_down_lose_and_repeat_nothing,
);

/// The same searches with no hidden hits and with many.
fn hidden_posts_change_no_answer_and_no_cursor(store: &Store) {
    let mut home = World::owned(store, "home", Owner::Operator, Audience::Public);
    home.poll((1..=9).rev().map(|id| text(id * 1_000, "a cat")).collect());
    index(store, 1_000);
    let few = Range { limit: 4, ..ALL };
    let viewers = [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator];
    let all = || {
        viewers.map(|viewer| {
            let down = stretch(store, "cat", few, viewer);
            let up = Range {
                min: Some(LocalId::new(0)),
                ..few
            };
            (down, stretch(store, "cat", up, viewer))
        })
    };
    let before = all();
    let hidden = World::owned(store, "hidden", Owner::Account(ANN), Audience::Private);
    let mut hidden = hidden;
    for page in 0..110 {
        let ids = (20_000 + page * 40..20_000 + page * 40 + 40).rev();
        hidden.poll(ids.map(|id| text(id, "a cat")).collect());
    }
    assert_eq!(all(), before);
    while index(store, 500) > 0 {}
    assert_eq!(all(), before);
    assert_eq!(find(store, "cat", ALL, Viewer::Account(ANN)).len(), 1_000);
}

fn pages_up_and_down_lose_and_repeat_nothing(store: &Store) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut world = World::readable(store, "home");
    let mut cats: HashSet<String> = HashSet::new();
    let mut next = 1;
    let (mut seen, mut cursor) = (HashSet::new(), None);
    for _ in 0..30 {
        let ids: Vec<u64> = (next..next + rng.random_range(1..6)).collect();
        next += ids.len() as u64;
        let posts = ids.iter().rev().map(|id| {
            let animal = ["cat", "dog"].choose(&mut rng).expect("one");
            if *animal == "cat" && cursor.is_none() {
                cats.insert(id.to_string());
            }
            text(*id, &format!("a {animal}"))
        });
        let posts: Vec<Post> = posts.collect();
        world.poll(posts);
        index(store, rng.random_range(0..8));
        if rng.random_bool(0.5) {
            continue;
        }
        // What came after the pass began stands above it.
        let range = Range {
            max: cursor,
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        for post in &page {
            assert!(
                seen.insert(post.upstream_id.clone()),
                "{} twice",
                post.upstream_id
            );
        }
        cursor = page.last().map(|post| post.id).or(cursor);
    }
    loop {
        let range = Range {
            max: cursor,
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        if page.is_empty() {
            break;
        }
        cursor = page.last().map(|post| post.id);
        seen.extend(page.into_iter().map(|post| post.upstream_id));
    }
    assert!(cats.is_subset(&seen), "{cats:?} {seen:?}");
    // Upward from below everything.
    let (mut upward, mut above) = (Vec::new(), LocalId::new(0));
    loop {
        let range = Range {
            min: Some(above),
            limit: 3,
            ..ALL
        };
        let page = find(store, "cat", range, Viewer::Operator);
        let Some(newest) = page.first() else { break };
        above = newest.id;
        upward.extend(page.into_iter().rev().map(|post| post.upstream_id));
    }
    upward.reverse();
    assert_eq!(upward, found(store, "cat"));
}
