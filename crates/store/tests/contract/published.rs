//! Sources that accounts publish, as others read them.

use std::collections::HashSet;

use driftline_core::{
    names::audience::Audience,
    post::{Author, Post},
    thread::ThreadLimits,
};
use driftline_store::{
    AccountId, Owner, account, change_feed,
    source::LastPosts,
    timeline::{self, TimelinePost, Viewer},
    visible,
};

use crate::{
    audiences::{ORIGINS, add_of, found, listed, public},
    threads::{reply, thread},
    world::{ANN, BOB, Store, World, post},
};

on_both!(
    the_world_reads_of_what_an_account_publishes_what_its_server_can_vouch_for,
    a_claimed_post_is_the_worlds_while_a_source_of_the_operator_has_it,
    a_claimed_post_stands_where_the_readers_own_source_has_it,
    what_the_operator_keeps_stays_the_worlds_whatever_an_account_publishes,
    claimed_replies_take_no_room_in_threads_for_others,
    others_learn_of_no_author_whom_a_published_source_only_claims_to_know,
);

/// A post of the server that shows it, and one that it only claims to know.
fn own(id: u64) -> Post {
    Post {
        uri: Some(format!("{}/posts/{id}", ORIGINS[1])),
        ..post(id, "own")
    }
}

fn claimed(id: u64) -> Post {
    post(id, "claimed")
}

fn by(author: u64, acct: &str, post: Post) -> Post {
    Post {
        author: Author {
            id: author.to_string().as_str().into(),
            acct: acct.to_owned(),
            ..post.author
        },
        ..post
    }
}

fn boost(id: u64, of: Post) -> Post {
    Post {
        boost_of: Some(Box::new(of)),
        ..own(id)
    }
}

fn ids(posts: &[TimelinePost]) -> Vec<u64> {
    let id = |post: &TimelinePost| post.upstream_id.parse().expect("a number");
    let mut ids: Vec<u64> = posts.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

fn the_world_reads_of_what_an_account_publishes_what_its_server_can_vouch_for(store: &Store) {
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Private, ORIGINS[1]);
    home.poll(vec![
        boost(4, claimed(90)),
        claimed(3),
        boost(2, own(80)),
        own(1),
    ]);
    let anns = Viewer::Account(ANN);
    let others = [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator];
    let before = [public(&home, anns), listed(&home, anns)];
    home.set_audience(Audience::Public);
    // Posts that come while it is public are shown to the same readers.
    home.poll(vec![
        claimed(6),
        own(5),
        boost(4, claimed(90)),
        claimed(3),
        boost(2, own(80)),
        own(1),
    ]);
    for viewer in others {
        assert_eq!(ids(&public(&home, viewer)), [1, 2, 5], "{viewer:?}");
        assert_eq!(ids(&listed(&home, viewer)), [1, 2, 5], "{viewer:?}");
    }
    let all = [public(&home, anns), listed(&home, anns)];
    for (all, before) in all.iter().zip(before) {
        assert_eq!(ids(all), [1, 2, 3, 4, 5, 6]);
        assert!(before.iter().all(|post| all.contains(post)), "{all:?}");
    }
    for post in &all[1] {
        let is_claimed = ["3", "4", "6"].contains(&&*post.upstream_id);
        for viewer in others {
            assert_eq!(found(&home, post.id, viewer), !is_claimed, "{post:?}");
        }
        assert!(found(&home, post.id, anns));
    }
    let key = home.source;
    let changes = home
        .read(move |tx| change_feed::after(tx, key, 0, 100))
        .changes;
    for change in changes {
        let post = change.row.post;
        let is_claimed = ["3", "4", "6"].contains(&&*post.upstream_id);
        assert_eq!(post.claimed, is_claimed, "{post:?}");
    }
    home.set_audience(Audience::Private);
    assert_eq!(public(&home, Viewer::Anonymous), []);
    assert_eq!(public(&home, anns), all[0]);
}

fn a_claimed_post_is_the_worlds_while_a_source_of_the_operator_has_it(store: &Store) {
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Public, ORIGINS[1]);
    home.poll(vec![claimed(3), own(1)]);
    let worlds = |world: &World| ids(&public(world, Viewer::Anonymous));
    assert_eq!(worlds(&home), [1]);
    let mut operators = add_of(store, "all", Owner::Operator, Audience::Public, ORIGINS[1]);
    operators.poll(vec![claimed(3), own(1)]);
    assert_eq!(worlds(&home), [1, 3]);
    operators.set_audience(Audience::Private);
    assert_eq!(worlds(&home), [1]);
    operators.set_audience(Audience::Public);
    assert_eq!(worlds(&home), [1, 3]);
    operators.remove(LastPosts::Remove);
    assert_eq!(worlds(&home), [1]);
    assert_eq!(ids(&public(&home, Viewer::Account(ANN))), [1, 3]);
}

/// Another account's source changes nothing of where a reader finds what an own source has.
fn a_claimed_post_stands_where_the_readers_own_source_has_it(store: &Store) {
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Public, ORIGINS[1]);
    home.poll(vec![claimed(3)]);
    let owner = Owner::Account(BOB);
    let mut bobs = add_of(store, "bobs", owner, Audience::Private, ORIGINS[1]);
    bobs.poll(vec![claimed(3)]);
    let bob = Viewer::Account(BOB);
    let own = listed(&bobs, bob);
    assert_eq!(ids(&own), [3]);
    let found = public(&bobs, bob);
    assert_eq!(ids(&found), [3]);
    assert_eq!(found[0].id, own[0].id);
}

fn what_the_operator_keeps_stays_the_worlds_whatever_an_account_publishes(store: &Store) {
    let mut operators = add_of(store, "all", Owner::Operator, Audience::Public, ORIGINS[1]);
    operators.poll(vec![claimed(3)]);
    operators.remove(LastPosts::Keep);
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Public, ORIGINS[1]);
    home.poll(vec![claimed(3)]);
    let is_there = |step: &str| {
        for viewer in [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator] {
            let shown = public(&home, viewer);
            assert_eq!(ids(&shown), [3], "{step}: {viewer:?}");
            let (id, instance) = (shown[0].post_id, shown[0].instance);
            let seen = home.read(move |tx| visible(tx, instance, &[id], viewer));
            assert!(seen.contains(&id), "{step}: {viewer:?}");
        }
    };
    is_there("published");
    home.set_audience(Audience::Private);
    is_there("private");
    home.remove(LastPosts::Remove);
    is_there("removed");
}

fn claimed_replies_take_no_room_in_threads_for_others(store: &Store) {
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Public, ORIGINS[1]);
    let own_reply = Post {
        uri: own(9).uri,
        ..reply(9, 1)
    };
    let claimed: Vec<Post> = (2..9).rev().map(|id| reply(id, 1)).collect();
    home.poll([vec![own_reply], claimed, vec![own(1)]].concat());
    let limits = ThreadLimits {
        descendants: 2,
        ..ThreadLimits::ACCOUNT
    };
    let below = |viewer| thread(&home, 1, viewer, limits).map(|thread| ids(&thread.descendants));
    for viewer in [Viewer::Anonymous, Viewer::Account(BOB)] {
        assert_eq!(below(viewer), Some(vec![9]), "{viewer:?}");
    }
    assert_eq!(
        below(Viewer::Account(ANN)).map(|below| below.len()),
        Some(2)
    );
}

fn others_learn_of_no_author_whom_a_published_source_only_claims_to_know(store: &Store) {
    let owner = Owner::Account(ANN);
    let mut home = add_of(store, "home", owner, Audience::Public, ORIGINS[1]);
    home.poll(vec![
        by(1, "eve@sim.example", claimed(3)),
        by(2, "local", own(2)),
        // Its server gives a post of its own an author of another one.
        by(3, "cat@sim.example", own(1)),
    ]);
    let anns = Viewer::Account(ANN);
    let authors: Vec<AccountId> = listed(&home, anns)
        .iter()
        .filter_map(|post| post.account)
        .collect();
    let known = |viewer| {
        let authors = authors.clone();
        let known = home.read(move |tx| timeline::known_authors(tx, &authors, viewer));
        authors_of(&home, known)
    };
    assert_eq!(known(anns), ["cat@sim.example", "eve@sim.example", "local"]);
    assert_eq!(ids(&public(&home, Viewer::Anonymous)), [2]);
    for viewer in [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator] {
        assert_eq!(known(viewer), ["local"], "{viewer:?}");
    }
}

fn authors_of(world: &World, ids: HashSet<AccountId>) -> Vec<String> {
    let (ids, sources) = (Vec::from_iter(ids), [world.source]);
    let found = world.read(move |tx| account::by_ids(tx, &ids, &sources));
    let mut names: Vec<String> = found.into_iter().map(|found| found.acct).collect();
    names.sort_unstable();
    names
}
