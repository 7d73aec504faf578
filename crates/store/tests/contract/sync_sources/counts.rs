//! Entries of which a replica has all but what changes without an edit.

use driftline_core::post::{Post, Visibility};
use driftline_store::{
    Store, account, change_feed,
    refresh::OutboxItem,
    sync::{SourceChunk, SourceLimits},
};

use super::{
    ALL, READERS, commit, home, key, keys, listed, poll, private,
    replica::{Filter, OWNER, Replica, WORLD},
};
use crate::{
    refresh::{HOUR_MS, MINUTE_MS},
    world::{World, post, posts, with},
};

on_both!(
    counts_come_alone_to_a_replica_that_has_the_rest,
    a_post_that_moves_up_during_a_full_sync_comes_whole,
    an_edit_that_moves_up_by_counts_comes_whole,
    a_post_at_two_places_comes_whole,
    a_replica_with_a_filter_gets_whole_posts,
    what_others_may_not_see_decides_nothing,
    changed_names_come_with_the_counts,
);

/// Notifies the source of new counts of a post. Returns the number of its entries that took a USN.
pub(super) fn recount(world: &World, id: u64) -> u64 {
    let shown = OWNER.shown(world);
    let Some(post) = shown.get(&key(id)) else {
        return 0;
    };
    let item = OutboxItem {
        post: post.post_id,
        counts: true,
        since_ms: world.now_ms,
    };
    world.notify(vec![item])
}

/// Takes a chunk. Returns the keys of the entries that come whole, and of those that come with their counts alone.
fn pull(
    replica: &mut Replica,
    world: &World,
    limits: SourceLimits,
) -> (Vec<String>, Vec<String>, SourceChunk) {
    let before = replica.clone();
    let chunk = replica.pull(world, limits);
    let keys = |is_partial: bool| -> Vec<String> {
        let entries = chunk.entries.iter();
        let entries = entries.filter(|entry| before.has_content(entry) == is_partial);
        entries.map(|entry| entry.key.clone()).collect()
    };
    let (whole, partial) = (keys(false), keys(true));
    (whole, partial, chunk)
}

fn counts_come_alone_to_a_replica_that_has_the_rest(store: &Store) {
    let mut world = home(store);
    world.poll(posts([3, 2, 1]));
    for by in READERS {
        let mut replica = Replica::begin_full(&world, by);
        let (whole, partial, _) = pull(&mut replica, &world, ALL);
        assert_eq!((whole.len(), partial.len()), (3, 0), "{by:?}");
        assert_eq!(recount(&world, 1), 1);
        let (whole, partial, _) = pull(&mut replica, &world, ALL);
        assert_eq!((whole, partial), (vec![], vec![key(1)]), "{by:?}");
    }
    let mut replica = Replica::complete(&world, WORLD);
    poll(
        &mut world,
        vec![
            post(4, "new"),
            post(3, "text"),
            post(2, "edited"),
            post(1, "text"),
        ],
    );
    recount(&world, 1);
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![key(2), key(4)], vec![key(1)]));
    for id in [2, 4] {
        recount(&world, id);
    }
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![], vec![key(2), key(4)]));
    // One leaves the source, and is back at another place.
    let without = || vec![post(4, "new"), post(2, "edited"), post(1, "text")];
    for _ in 0..2 {
        world.now_ms += MINUTE_MS;
        poll(&mut world, without());
    }
    let mut back = without();
    back.insert(1, post(3, "text"));
    poll(&mut world, back);
    recount(&world, 3);
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![key(3)], vec![]));
}

/// The replica has passed the entry's USN, but not the entry.
fn a_post_that_moves_up_during_a_full_sync_comes_whole(store: &Store) {
    let mut world = home(store);
    world.poll(posts([3, 2, 1]));
    let mut replica = Replica::begin_full(&world, WORLD);
    let one = SourceLimits::new(1);
    let (whole, ..) = pull(&mut replica, &world, one);
    assert_eq!(whole, [key(3)]);
    recount(&world, 1);
    recount(&world, 3);
    let (whole, _, chunk) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, chunk.more), (vec![key(2)], false));
    assert_eq!(replica.held, None);
    let (whole, partial, _) = pull(&mut replica, &world, one);
    assert_eq!((whole, partial), (vec![key(1)], vec![]));
    assert_eq!(replica.held, None);
    let (whole, partial, _) = pull(&mut replica, &world, one);
    assert_eq!((whole, partial), (vec![key(3)], vec![]));
    assert_eq!(replica.held, Some(5));
    assert_eq!(replica.posts, WORLD.shown(&world));
    recount(&world, 1);
    let (whole, partial, _) = pull(&mut replica, &world, one);
    assert_eq!((whole, partial), (vec![], vec![key(1)]));
}

/// The edit is below the USN up to which the replica has read, and was above it when it read there.
fn an_edit_that_moves_up_by_counts_comes_whole(store: &Store) {
    let mut world = home(store);
    world.poll(posts([3, 2, 1]));
    let mut replica = Replica::complete(&world, WORLD);
    poll(
        &mut world,
        vec![post(3, "text"), post(2, "text"), post(1, "edited")],
    );
    poll(
        &mut world,
        vec![post(3, "text"), post(2, "edited"), post(1, "edited")],
    );
    recount(&world, 3);
    recount(&world, 1);
    // 2 at 5, 3 at 6, 1 at 7. The last edit of 1 was at 4.
    let one = SourceLimits::new(1);
    for (usn, whole, partial) in [
        (5, vec![key(2)], vec![]),
        (6, vec![], vec![key(3)]),
        (7, vec![key(1)], vec![]),
    ] {
        let (found_whole, found_partial, chunk) = pull(&mut replica, &world, one);
        assert_eq!((found_whole, found_partial), (whole, partial));
        assert_eq!((chunk.end, chunk.more), (usn, usn < 7));
    }
    assert_eq!(replica.posts, WORLD.shown(&world));
}

/// The replica has one of the places, which need not be the one whose counts come.
fn a_post_at_two_places_comes_whole(store: &Store) {
    let mut world = home(store);
    commit(
        &mut world,
        vec![listed("13", 1), listed("12", 1), listed("11", 2)],
    );
    let mut replica = Replica::complete(&world, WORLD);
    assert_eq!((recount(&world, 1), recount(&world, 2)), (2, 1));
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![key(1), key(1)], vec![key(2)]));
}

/// The filter may select a post by what changes without a USN.
fn a_replica_with_a_filter_gets_whole_posts(store: &Store) {
    let mut world = home(store);
    world.poll(posts([2, 1]));
    let mut replica = Replica::begin_full(&world, WORLD);
    replica.change_filter(&world, Filter::EndsWith('t'));
    replica.catch_up(&world, ALL);
    assert!(replica.held.is_some());
    assert_eq!(recount(&world, 1), 1);
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![key(1)], vec![]));
}

/// A private post comes while the world's replica makes a full sync.
fn what_others_may_not_see_decides_nothing(store: &Store) {
    let mut world = home(store);
    world.poll(posts([2, 1]));
    let mut replica = Replica::begin_full(&world, WORLD);
    pull(&mut replica, &world, SourceLimits::new(1));
    poll(
        &mut world,
        vec![private(3, "text"), post(2, "text"), post(1, "text")],
    );
    pull(&mut replica, &world, ALL);
    assert_eq!(replica.held, Some(2));
    recount(&world, 1);
    let (whole, partial, _) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![], vec![key(1)]));
    // Other names of its author alone give nothing a USN.
    let page = |name: &str| {
        let secret = with(Visibility::Private, by("eve", name, 4));
        vec![secret, private(3, "text"), post(2, "text"), post(1, "text")]
    };
    poll(&mut world, page("Eve"));
    let before = world.usns();
    world.now_ms += HOUR_MS;
    world.poll(page("Eve at sea"));
    assert_eq!(world.usns(), before);
}

fn by(author: &str, display_name: &str, id: u64) -> Post {
    let mut post = post(id, "text");
    post.author.id = author.into();
    post.author.acct = author.to_owned();
    post.author.display_name = display_name.to_owned();
    post.author.raw = format!(r#"{{"display_name":"{display_name}"}}"#);
    post
}

fn changed_names_come_with_the_counts(store: &Store) {
    let mut world = home(store);
    let page = |name: &str| vec![by("eve", name, 3), by("bob", "Bob", 2), by("eve", name, 1)];
    world.poll(page("Eve"));
    let mut replica = Replica::complete(&world, WORLD);
    let source = world.source;
    assert_eq!(world.usns(), [(1, 1), (2, 2), (3, 3)]);
    // Once an hour, since a name may be a clock.
    world.now_ms += MINUTE_MS;
    assert_eq!(world.poll(page("Eve at sea")).update_count, 3);
    world.now_ms += HOUR_MS;
    assert_eq!(world.poll(page("Eve at sea")).update_count, 5);
    assert_eq!(world.usns(), [(1, 4), (2, 2), (3, 5)]);
    let feed = world.read(move |tx| change_feed::after(tx, source, 3, 100));
    assert_eq!((feed.changes.len(), feed.end), (0, 5), "no edit");
    let (whole, partial, chunk) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![], vec![key(1), key(3)]));
    let known: Vec<_> = chunk
        .entries
        .iter()
        .map(|entry| entry.profile_usn)
        .collect();
    assert_eq!(known, [Some(5), Some(5)]);
    let first = Replica::begin_full(&world, WORLD).pull(&world, ALL);
    let known: Vec<_> = first
        .entries
        .iter()
        .map(|entry| entry.profile_usn)
        .collect();
    assert_eq!(known, [Some(5), Some(5), None], "in a full sync, too");
    let eve = chunk.entries[0].post.account.expect("an author");
    let shown = world.read(move |tx| account::by_ids(tx, &[eve], &[source]));
    assert_eq!(shown[0].display_name, "Eve at sea");
    for name in ["Eve at sea", "Eve at 12:00"] {
        world.now_ms += MINUTE_MS;
        assert_eq!(world.poll(page(name)).update_count, 5, "{name}");
    }
    // The replica has the profile now. A new post changes it, too.
    recount(&world, 1);
    let (_, partial, chunk) = pull(&mut replica, &world, ALL);
    assert_eq!(
        (partial, chunk.entries[0].profile_usn),
        (vec![key(1)], Some(5))
    );
    let new = by("eve", "Eve ashore", 4);
    poll(&mut world, [vec![new], page("Eve at sea")].concat());
    recount(&world, 1);
    let (whole, partial, chunk) = pull(&mut replica, &world, ALL);
    assert_eq!((whole, partial), (vec![key(4)], vec![key(1)]));
    let found = keys(&chunk).0.iter().position(|found| *found == key(1));
    let first = &chunk.entries[found.expect("the post")];
    assert_eq!(first.profile_usn, Some(7));
}
