//! The copies of posts that bookmarks have: they are what the account may see now, and each change of that takes a USN.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use driftline_core::{
    answer::LookUp,
    names::audience::Audience,
    post::Visibility,
    social::Mark,
    sync::{ObjectKey, PostValue},
};
use driftline_store::{
    LocalAccountId, LocalId, Owner, Store, StoreError, Tx, change_feed,
    social::{
        bookmark_copy::{self, BookmarkKey},
        local_account, marked_post,
    },
    source::LastPosts,
    sync::{self, ShownPosts},
    timeline::{self, PostKey, TimelinePost},
    viewer::{LazyReadableSources, Viewer},
};
use serde_json::{Value, json};

use super::{MAX_BYTES, change, chunk, done, post_name, push_resolved, update_count};
use crate::{
    refresh::{MINUTE_MS, liked},
    social::account,
    world::{START_MS, World, edited, post, posts, read, with, write},
};

on_both!(
    an_edit_and_a_deletion_take_a_usn_and_counts_take_none,
    lost_sight_removes_the_copy_and_keeps_the_bookmark,
    a_post_that_leaves_a_private_source_takes_its_copy_along,
    another_account_changes_nothing_here,
    an_edit_of_a_better_copy_reaches_the_bookmark_of_another,
    the_posts_of_all_changes_are_read_in_parts,
    copies_count_for_the_bytes_of_a_chunk,
    the_newest_copy_comes_with_the_answer_to_a_push,
    a_pushed_bookmark_has_the_version_that_was_read_before,
);

/// The key of a source's post.
pub(super) fn key(world: &World, id: u64) -> PostKey {
    let (instance, name) = (world.source.instance, id.to_string());
    read(&world.store, move |tx| {
        let mut found = timeline::keys(tx, instance, &[&name])?;
        Ok(found.remove(&name).expect("a stored post"))
    })
}

fn set(store: &Store, account: LocalAccountId, mark: Mark, key: PostKey) {
    write(store, local_account::root(account), move |tx| {
        marked_post::set(tx, account, mark, key, START_MS)
    });
}

pub(super) fn bookmark(store: &Store, account: LocalAccountId, key: PostKey) {
    set(store, account, Mark::Bookmark, key);
}

/// Writes the JSON of posts as it came.
fn write_raw(
    _: &mut Tx<'_>,
    posts: &[TimelinePost],
) -> Result<HashMap<LocalId, Value>, StoreError> {
    let posts = posts.iter();
    Ok(posts
        .map(|post| (post.id, Value::from(post.raw.as_str())))
        .collect())
}

/// The posts of bookmarks, with their JSON as it came.
fn raw(sources: &LazyReadableSources) -> ShownPosts<'_> {
    ShownPosts {
        sources,
        write: &write_raw,
    }
}

/// The USN and the copy of each living bookmark and favourite, by their keys.
fn copies(store: &Store, account: LocalAccountId) -> BTreeMap<String, (u64, Option<String>)> {
    let chunk = read(store, move |tx| {
        let sources = LazyReadableSources::new(Viewer::Account(account));
        sync::chunk_with_copies(tx, account, None, 100, MAX_BYTES, raw(&sources))
    });
    let objects = chunk.expect("a chunk").objects.into_iter();
    let copies = objects.map(|object| {
        let value = object.value.read().expect("JSON");
        let value: PostValue = serde_json::from_value(value).expect("only posts are marked");
        assert!(value.post.is_some() || value.status.is_none());
        let status = value.status.map(|status| match status {
            Value::String(raw) => raw,
            other => panic!("{other}"),
        });
        let key = object.key.as_str().to_owned();
        (key, (object.usn.get(), status))
    });
    copies.collect()
}

/// The only bookmark of an account.
fn copy(store: &Store, account: LocalAccountId) -> (u64, Option<String>) {
    let copies = copies(store, account);
    assert_eq!(copies.len(), 1);
    copies.into_values().next().expect("a bookmark")
}

fn renew(store: &Store, bookmarks: Vec<BookmarkKey>) -> usize {
    let renewed = bookmarks.into_iter().map(|BookmarkKey { account, id }| {
        let outdated = read(store, move |tx| bookmark_copy::outdated(tx, account, &[id]));
        let count = outdated.len();
        let renew = || {
            let outdated = outdated.clone();
            write(store, local_account::root(account), move |tx| {
                bookmark_copy::renew(tx, account, &outdated)
            })
        };
        assert_eq!(renew(), count);
        // As another process that has read the same.
        assert_eq!(renew(), 0);
        count
    });
    renewed.sum()
}

/// Compares all bookmarks, and returns the number of those that took a USN.
fn renew_all(store: &Store) -> usize {
    let (mut above, mut renewed) = (None, 0);
    loop {
        let page = read(store, move |tx| bookmark_copy::page(tx, above, 1));
        let Some(last) = page.last().copied() else {
            return renewed;
        };
        above = Some(last);
        renewed += renew(store, page);
    }
}

/// Compares the bookmarks of posts.
fn renew_of(store: &Store, posts: Vec<PostKey>) -> usize {
    let bookmarks = read(store, move |tx| bookmark_copy::of_posts(tx, &posts));
    renew(store, bookmarks)
}

fn owned(store: &Store, name: &str, owner: LocalAccountId, audience: Audience) -> World {
    let mut world = World::owned(store, name, Owner::Account(owner), audience);
    world.poll(Vec::new());
    world
}

fn an_edit_and_a_deletion_take_a_usn_and_counts_take_none(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(1, 0)]);
    let one = key(&world, 1);
    bookmark(store, ann, one);
    bookmark(store, bob, one);
    set(store, bob, Mark::Favourite, one);
    assert_eq!(copy(store, ann), (1, Some(liked(1, 0).raw)));
    let of_bob = copies(store, bob).into_values().map(|(_, copy)| copy);
    assert_eq!(of_bob.flatten().count(), 1, "favourites have none");
    assert_eq!(renew_all(store), 0);

    world.now_ms += MINUTE_MS;
    world.poll(vec![liked(1, 70)]);
    assert_eq!(renew_all(store), 0);
    assert_eq!(copy(store, ann).0, 1);

    world.now_ms += MINUTE_MS;
    world.poll(vec![edited(1, "better", 50)]);
    assert_eq!(renew_of(store, vec![one]), 2);
    assert_eq!(renew_all(store), 0);
    assert_eq!(copy(store, ann), (2, Some(post(1, "better").raw)));

    world.now_ms += MINUTE_MS;
    world.look_up("1", LookUp::Gone);
    assert_eq!(copy(store, ann), (2, None), "at once");
    assert_eq!(renew_of(store, vec![one]), 2);
    assert_eq!(copy(store, ann), (3, None));
    assert_eq!(renew_all(store), 0);
}

fn lost_sight_removes_the_copy_and_keeps_the_bookmark(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let mut world = owned(store, "bobs", bob, Audience::Members);
    world.poll(posts([2, 1]));
    bookmark(store, ann, key(&world, 1));
    let text = Some(post(1, "text").raw);
    assert_eq!(copy(store, ann), (1, text.clone()));
    // The end of sharing, and its return.
    world.set_audience(Audience::Private);
    assert_eq!(copy(store, ann), (1, None), "at once");
    assert_eq!(renew_all(store), 1);
    assert_eq!(copy(store, ann), (2, None));
    world.set_audience(Audience::Members);
    assert_eq!(renew_all(store), 1);
    assert_eq!(copy(store, ann), (3, text));
    // The post is narrowed.
    world.now_ms += MINUTE_MS;
    let narrowed = with(Visibility::Private, edited(1, "text", 50));
    world.poll(vec![post(2, "text"), narrowed]);
    let changed = [key(&world, 1), key(&world, 2)];
    assert_eq!(renew_of(store, changed.to_vec()), 1);
    assert_eq!(copy(store, ann), (4, None));
    // The end of the source.
    bookmark(store, bob, key(&world, 1));
    assert!(copy(store, bob).1.is_some(), "its owner sees it");
    world.remove(LastPosts::Remove);
    assert_eq!(renew_all(store), 1);
    assert_eq!(copy(store, bob), (2, None));
    assert_eq!(copy(store, ann), (4, None));
}

fn a_post_that_leaves_a_private_source_takes_its_copy_along(store: &Store) {
    let ann = account(store, "ann");
    let mut world = owned(store, "anns", ann, Audience::Private);
    world.poll(posts([4, 3, 2, 1]));
    let left = key(&world, 2);
    bookmark(store, ann, left);
    let text = Some(post(2, "text").raw);
    assert_eq!(copy(store, ann), (1, text.clone()));
    let source = world.source;
    let usn = world.read(change_feed::end).usn(u64::from(source.id));
    world.now_ms += 1_000;
    world.poll(posts([4, 3, 1]));
    world.now_ms += MINUTE_MS;
    assert_eq!(world.poll(posts([4, 3, 1])).left, 1);
    let changed = world.read(move |tx| change_feed::posts_after(tx, source, usn, 10));
    assert_eq!(changed.posts, [left]);
    assert_eq!(renew_of(store, changed.posts), 1);
    assert_eq!(copy(store, ann), (2, None));
}

fn another_account_changes_nothing_here(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let one = key(&world, 1);
    bookmark(store, ann, one);
    bookmark(store, bob, one);
    // What others keep, and what they alone see, of the same post.
    let mut bobs = owned(store, "bobs", bob, Audience::Private);
    bobs.poll(posts([3, 1]));
    bookmark(store, bob, key(&bobs, 3));
    bobs.look_up("3", LookUp::Gone);
    bobs.set_audience(Audience::Members);
    bobs.remove(LastPosts::Remove);
    write(store, local_account::root(bob), move |tx| {
        marked_post::remove(tx, bob, Mark::Bookmark, one.post)
    });
    renew_all(store);
    assert_eq!(copy(store, ann), (1, Some(post(1, "text").raw)));
    assert_eq!(update_count(store, ann), 1);
}

fn an_edit_of_a_better_copy_reaches_the_bookmark_of_another(store: &Store) {
    let ann = account(store, "ann");
    let shown = |text: &str, edited_at_ms: Option<i64>| {
        let mut shown = post(1, text);
        shown.author.acct = "ann@sim.example".to_owned();
        shown.edited_at_ms = edited_at_ms;
        shown
    };
    let of_server = |name: &str| {
        let origin = format!("https://{name}.example");
        let mut world = World::of_server(store, name, &origin, Owner::Operator, Audience::Public);
        world.poll(Vec::new());
        world
    };
    let mut other = of_server("other");
    other.poll(vec![shown("text", None)]);
    bookmark(store, ann, key(&other, 1));
    let mut own = of_server("sim");
    own.poll(vec![shown("text", None)]);
    renew_all(store);
    let (before, _) = copy(store, ann);
    own.now_ms += MINUTE_MS;
    own.poll(vec![shown("better", Some(50))]);
    let text = Some(shown("better", None).raw);
    assert_eq!(copy(store, ann).1, text, "the best copy");
    assert_eq!(renew_of(store, vec![key(&own, 1)]), 1);
    assert_eq!(copy(store, ann), (before + 1, text));
}

fn the_posts_of_all_changes_are_read_in_parts(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([4, 3, 2, 1]));
    world.now_ms += MINUTE_MS;
    world.poll(vec![
        post(4, "text"),
        edited(3, "better", 50),
        post(2, "text"),
        edited(1, "better", 50),
    ]);
    let source = world.source;
    let all: BTreeSet<PostKeyOrder> = (1..=4).map(|id| order(key(&world, id))).collect();
    for limit in [1, 2, 10] {
        let (mut usn, mut found) = (0, BTreeSet::new());
        loop {
            let part = world.read(move |tx| change_feed::posts_after(tx, source, usn, limit));
            assert!(part.end > usn || !part.has_more);
            found.extend(part.posts.into_iter().map(order));
            usn = part.end;
            if !part.has_more {
                break;
            }
        }
        assert_eq!((usn, &found), (6, &all), "{limit}");
        let rest = world.read(move |tx| change_feed::posts_after(tx, source, usn, limit));
        assert_eq!(
            (rest.posts, rest.end, rest.has_more),
            (Vec::new(), 6, false)
        );
    }
    let edits = world.read(move |tx| change_feed::posts_after(tx, source, 4, 10));
    let edits: BTreeSet<PostKeyOrder> = edits.posts.into_iter().map(order).collect();
    assert_eq!(edits, [1, 3].map(|id| order(key(&world, id))).into());
}

type PostKeyOrder = u64;

fn order(key: PostKey) -> PostKeyOrder {
    key.post.raw()
}

fn copies_count_for_the_bytes_of_a_chunk(store: &Store) {
    let ann = account(store, "ann");
    let mut world = World::readable(store, "home");
    let text = "a".repeat(1_000);
    world.poll((1..=4).rev().map(|id| post(id, &text)).collect());
    for id in 1..=4 {
        bookmark(store, ann, key(&world, id));
    }
    let (mut cursor, mut sizes) = (None, Vec::new());
    loop {
        let from: Option<sync::Cursor> = cursor.clone();
        let chunk = read(store, move |tx| {
            let sources = LazyReadableSources::new(Viewer::Account(ann));
            sync::chunk_with_copies(tx, ann, from.as_ref(), 100, 3_800, raw(&sources))
        });
        let Some(chunk) = chunk else { break };
        sizes.push(chunk.objects.len());
        cursor = Some(chunk.cursor);
    }
    assert_eq!(sizes, [3, 1]);
    let without = chunk(store, ann, None, 100, 3_800).expect("a chunk");
    assert_eq!(without.objects.len(), 4);
    for object in without.objects {
        let value = object.value.read().expect("JSON");
        assert!(value.get("status").is_none(), "{value}");
    }
}

fn the_newest_copy_comes_with_the_answer_to_a_push(store: &Store) {
    let ann = account(store, "ann");
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    bookmark(store, ann, key(&world, 1));
    let names = ["bookmark", "favourite", "note"];
    let keys = names.map(|kind| ObjectKey::parse(format!("{kind}:{}", post_name(1))));
    let keys = keys.map(|key| key.expect("a key"));
    let found = read(store, move |tx| {
        let sources = LazyReadableSources::new(Viewer::Account(ann));
        sync::current_objects(tx, ann, &keys, raw(&sources))
    });
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].usn.get(), 1);
    let json = found[0].value.read().expect("JSON");
    assert_eq!(json["status"], post(1, "text").raw);
    assert_eq!(json["post"], world.timeline()[0].id.to_string());
}

fn a_pushed_bookmark_has_the_version_that_was_read_before(store: &Store) {
    let ann = account(store, "ann");
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let one = key(&world, 1);
    let push = |base: u64| {
        let viewer = Viewer::Account(ann);
        let shown = read(store, move |tx| {
            timeline::shown_versions(tx, &[one], viewer)
        });
        assert_eq!(shown.len(), 1);
        let resolved = sync::Resolved {
            posts: [(post_name(1), one)].into(),
            shown,
            ..sync::Resolved::default()
        };
        let bookmark = format!("bookmark:{}", post_name(1));
        (resolved, change(&bookmark, base, json!({})))
    };
    let (resolved, bookmark) = push(0);
    assert_eq!(
        done(&push_resolved(store, ann, vec![bookmark], resolved)),
        [1]
    );
    assert_eq!(renew_all(store), 0);

    // One that is stale by then costs a USN.
    write(store, local_account::root(ann), move |tx| {
        marked_post::remove(tx, ann, Mark::Bookmark, one.post)
    });
    let (resolved, bookmark) = push(2);
    world.now_ms += MINUTE_MS;
    world.poll(vec![edited(1, "better", 50)]);
    assert_eq!(
        done(&push_resolved(store, ann, vec![bookmark], resolved)),
        [3]
    );
    assert_eq!(renew_all(store), 1);
    assert_eq!(copy(store, ann), (4, Some(post(1, "better").raw)));
}
