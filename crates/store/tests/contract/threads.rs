//! Threads: what a viewer may read above and below a post.

use std::collections::HashMap;

use driftline_core::{
    answer::LookUp,
    names::audience::Audience,
    post::{Post, Visibility},
    thread::ThreadLimits,
    upstream_id::UpstreamId,
};
use driftline_mastodon::RawObject;
use driftline_store::{
    LocalAccountId, Owner, SourceKey, Store, StoreError, local_ids,
    source::{self, LastPosts},
    thread_source::{self, FetchedFor, FetchedPosts},
    timeline::{self, Thread, TimelinePost, Viewer},
};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::world::{ANN, BOB, START_MS, World, hashed, on_both, post, with, write};

on_both!(
    a_thread_has_what_is_above_and_below,
    an_edit_tells_what_was_replied_to_and_a_deletion_above_does_not_end_it,
    replies_that_a_viewer_may_not_read_take_no_room_in_a_thread,
    replies_that_the_operator_keeps_without_a_source_stay_in_threads,
    a_source_has_what_a_thread_had_before_as_new,
);

/// A post that replies to another one.
pub(crate) fn reply(id: u64, to: u64) -> Post {
    Post {
        reply_to: Some(UpstreamId::new(to.to_string())),
        created_at_ms: Some(START_MS + id.cast_signed()),
        raw: format!(r#"{{"id":"{id}","content":"text","in_reply_to_id":"{to}"}}"#),
        ..post(id, "text")
    }
}

fn answered(post: &TimelinePost) -> Option<String> {
    let members = RawObject::parse(&post.raw).expect("JSON");
    Some(members.id("in_reply_to_id")?.into_owned())
}

/// The thread around the post of that ID at the upstream.
pub(crate) fn thread(
    world: &World,
    id: u64,
    viewer: Viewer,
    limits: ThreadLimits,
) -> Option<Thread> {
    let instance = world.source.instance;
    world.read(move |tx| {
        let name = id.to_string();
        let Some(key) = timeline::keys(tx, instance, &[&name])?.remove(&name) else {
            return Ok(None);
        };
        let Some(post) = timeline::at_its_place(tx, key.post, viewer)? else {
            return Ok(None);
        };
        timeline::thread(tx, &post, viewer, limits, &answered).map(Some)
    })
}

fn ids(posts: &[TimelinePost]) -> Vec<u64> {
    let ids = posts
        .iter()
        .map(|post| post.upstream_id.parse().expect("a number"));
    ids.collect()
}

fn shown(world: &World, id: u64, viewer: Viewer) -> (Vec<u64>, Vec<u64>) {
    let thread = thread(world, id, viewer, ThreadLimits::ACCOUNT).expect("a post");
    (ids(&thread.ancestors), ids(&thread.descendants))
}

fn a_thread_has_what_is_above_and_below(store: &Store) {
    let mut world = World::readable(store, "a");
    // 1 ── 2 ── 4 ── 7
    //   │    └─ 6
    //   └─ 3 ── 5            8 replies to what is not stored.
    let posts = [(2, 1), (3, 1), (4, 2), (5, 3), (6, 2), (7, 4), (8, 99)];
    let replies = posts.into_iter().rev().map(|(id, to)| reply(id, to));
    world.poll(replies.chain([post(1, "text")]).collect());
    let shown = |id| shown(&world, id, Viewer::Anonymous);
    assert_eq!(shown(1), (vec![], vec![2, 4, 7, 6, 3, 5]));
    assert_eq!(shown(2), (vec![1], vec![4, 7, 6]));
    assert_eq!(shown(7), (vec![1, 2, 4], vec![]));
    assert_eq!(shown(8), (vec![], vec![]));
    let limits = ThreadLimits {
        ancestors: 1,
        descendants: 3,
        depth: 1,
    };
    let few = |id| {
        let thread = thread(&world, id, Viewer::Anonymous, limits).expect("an ID");
        (ids(&thread.ancestors), ids(&thread.descendants))
    };
    assert_eq!(few(1), (vec![], vec![2, 3]), "not the replies to replies");
    assert_eq!(few(7), (vec![4], vec![]), "the nearest");
}

fn an_edit_tells_what_was_replied_to_and_a_deletion_above_does_not_end_it(store: &Store) {
    let mut world = World::readable(store, "a");
    world.poll(vec![post(2, "text"), post(1, "text")]);
    assert!(shown(&world, 1, Viewer::Anonymous).1.is_empty());
    let edited = |reply: Post, at: i64| Post {
        edited_at_ms: Some(START_MS + at),
        ..reply
    };
    world.now_ms += 1_000;
    world.poll(vec![edited(reply(2, 1), 1), post(1, "text")]);
    assert_eq!(shown(&world, 1, Viewer::Anonymous).1, [2]);
    // Mastodon's answer once the post above is deleted.
    world.now_ms += 1_000;
    world.poll(vec![edited(post(2, "more"), 2), post(1, "text")]);
    assert_eq!(shown(&world, 1, Viewer::Anonymous).1, [2]);
}

/// What a viewer sees of random threads in a public and a private source, against a walk of the posts that the
/// viewer may see, one by one.
#[test]
fn random_threads_are_those_that_a_naive_walk_finds() {
    const POSTS: u64 = 60;
    on_both(|store| {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut public = World::owned(store, "public", Owner::Operator, Audience::Public);
        let mut home = World::owned(store, "home", Owner::Account(ANN), Audience::Private);
        let mut parents: HashMap<u64, u64> = HashMap::new();
        let mut is_public: HashMap<u64, bool> = HashMap::new();
        let (mut of_public, mut of_home) = (Vec::new(), Vec::new());
        for id in 1..=POSTS {
            let to = random.random_range(1..=POSTS);
            // Mostly upward, so that threads are long; sometimes a cycle, or itself.
            let to = if random.random_ratio(9, 10) {
                to.min(id).div_ceil(2)
            } else {
                to
            };
            parents.insert(id, to);
            let narrow = random.random_ratio(1, 5);
            let visibility = if narrow {
                Visibility::Private
            } else {
                Visibility::Public
            };
            let post = with(visibility, reply(id, to));
            let hidden = narrow || random.random_ratio(1, 5);
            is_public.insert(id, !hidden);
            match hidden {
                true => of_home.push(post),
                false => of_public.push(post),
            }
        }
        of_public.reverse();
        of_home.reverse();
        public.poll(of_public);
        home.poll(of_home);
        for viewer in [Viewer::Anonymous, Viewer::Account(ANN)] {
            let sees = |id: &u64| viewer != Viewer::Anonymous || is_public[id];
            for id in (1..=POSTS).filter(sees) {
                let mut above: Vec<u64> = Vec::new();
                let mut at = parents[&id];
                while sees(&at) && at != id && !above.contains(&at) {
                    above.insert(0, at);
                    at = parents[&at];
                }
                let is_below = |of: &u64| {
                    let (mut at, mut path) = (*of, Vec::<u64>::new());
                    while at != id && sees(&at) && !path.contains(&at) && !above.contains(&at) {
                        path.push(at);
                        at = parents[&at];
                    }
                    at == id && !path.is_empty()
                };
                let below: Vec<u64> = (1..=POSTS).filter(is_below).collect();
                let (found_above, mut found) = shown(&public, id, viewer);
                found.sort_unstable();
                assert_eq!((found_above, found), (above, below), "{viewer:?} {id}");
            }
        }
    });
}

fn replies_that_a_viewer_may_not_read_take_no_room_in_a_thread(store: &Store) {
    let mut public = World::owned(store, "public", Owner::Operator, Audience::Public);
    let mut home = World::owned(store, "home", Owner::Account(ANN), Audience::Private);
    // Hidden replies come before the others: of private sources, too narrow, and deleted.
    home.poll((11..=19).rev().map(|id| reply(id, 1)).collect());
    let narrow = (21..=29).rev();
    let narrow = narrow.map(|id| with(Visibility::Private, reply(id, 1)));
    let deleted = (31..=39).rev().map(|id| reply(id, 1));
    public.poll(deleted.chain(narrow).chain([post(1, "text")]).collect());
    for id in 31..=39 {
        public.look_up(&id.to_string(), LookUp::Gone);
    }
    public.now_ms += 1_000;
    // Not below a hidden one either.
    public.poll(vec![reply(53, 11), reply(52, 51), reply(51, 1)]);
    let limits = ThreadLimits {
        ancestors: 1,
        descendants: 2,
        depth: 5,
    };
    let below = |viewer| {
        ids(&thread(&public, 1, viewer, limits)
            .expect("a post")
            .descendants)
    };
    for viewer in [Viewer::Anonymous, Viewer::Account(LocalAccountId::new(2))] {
        assert_eq!(below(viewer), [51, 52], "{viewer:?}");
    }
    assert_eq!(below(account(ANN)), [11, 12]);
    assert_eq!(below(Viewer::Operator), [21, 22]);
}

fn replies_that_the_operator_keeps_without_a_source_stay_in_threads(store: &Store) {
    let mut public = World::owned(store, "public", Owner::Operator, Audience::Public);
    let mut other = World::owned(store, "other", Owner::Operator, Audience::Public);
    public.poll(vec![reply(2, 1)]);
    other.poll(vec![reply(3, 2), post(1, "text")]);
    public.remove(LastPosts::Keep);
    assert_eq!(shown(&other, 1, Viewer::Anonymous).1, [2, 3]);
    // An account's private source changes nothing for others.
    let mut home = World::owned(store, "home", Owner::Account(ANN), Audience::Private);
    home.poll(vec![reply(2, 1)]);
    assert_eq!(shown(&other, 1, Viewer::Anonymous).1, [2, 3]);
}

fn fetched(store: &Store, whose: FetchedFor, posts: Vec<Post>) -> (SourceKey, u64) {
    let instance = store.read_blocking(|tx| Ok::<_, StoreError>(source::instances(tx)?.remove(0)));
    let instance = instance.expect("an instance");
    let key = store.write_blocking(local_ids::root(), move |tx| {
        thread_source::find_or_add(tx, &instance, whose, START_MS)
    });
    let key = key.expect("a source");
    let posts: Vec<Post> = posts.into_iter().map(hashed).collect();
    let new = store.write_blocking(source::root(key), move |tx| {
        let fetched = FetchedPosts {
            whose,
            posts: &posts,
            asked_at_ms: START_MS + 5_000,
        };
        thread_source::store(tx, key, &fetched, START_MS + 5_000)
    });
    (key, new.expect("a write"))
}

fn account(id: LocalAccountId) -> Viewer {
    Viewer::Account(id)
}

#[test]
fn what_was_fetched_is_for_those_for_whom_it_was_and_in_no_timeline() {
    on_both(|store| {
        let mut world = World::readable(store, "a");
        world.poll(vec![post(1, "text")]);
        let posts = || {
            let private = with(Visibility::Private, reply(4, 1));
            vec![
                post(1, "text"),
                reply(2, 1),
                with(Visibility::Unlisted, reply(3, 1)),
                private,
                reply(2, 1),
            ]
        };
        let (of_world, new) = fetched(store, FetchedFor::World, posts());
        assert_eq!(new, 2, "neither the private one nor what the world has");
        assert_eq!(fetched(store, FetchedFor::World, posts()), (of_world, 0));
        let whose = FetchedFor::Owner(Owner::Account(ANN));
        let (of_ann, new) = fetched(store, whose, posts());
        assert_ne!(of_ann, of_world);
        assert_eq!(new, 1, "only what she does not see");
        for (viewer, below) in [
            (Viewer::Anonymous, vec![2]),
            (account(BOB), vec![2, 3]),
            (Viewer::Operator, vec![2, 3]),
            (account(ANN), vec![2, 3, 4]),
        ] {
            assert_eq!(shown(&world, 1, viewer).1, below, "{viewer:?}");
            let all = timeline::Range {
                limit: 40,
                ..timeline::Range::default()
            };
            let public = world.read(move |tx| timeline::public(tx, &all, viewer));
            assert_eq!(ids(&public), [1], "{viewer:?}");
        }
        // No command and no poller finds these sources.
        let listed = world.read(|tx| {
            let all = source::list(tx)?.len();
            let owned = source::owned(tx, Owner::Account(ANN))?.len();
            let readable = source::readable(tx, Viewer::Operator)?.len();
            let named = source::by_name(tx, "threads:1:world")?;
            Ok((all, owned, readable, named.is_some()))
        });
        assert_eq!(listed, (1, 0, 1, false));
        let found = world.read(move |tx| source::by_id(tx, of_world.id));
        assert_eq!(found, None);
        let feed = world.read(driftline_store::change_feed::sources);
        assert_eq!(feed.len(), 1);
        let hidden = world.read(|tx| thread_source::of_owner(tx, Owner::Account(ANN)));
        assert_eq!(hidden, [of_ann]);
        // What goes with her goes, and nothing of others.
        write(store, source::root(of_ann), move |tx| {
            source::remove(tx, of_ann, LastPosts::Remove)
        });
        assert_eq!(shown(&world, 1, account(ANN)).1, [2, 3]);
    });
}

fn a_source_has_what_a_thread_had_before_as_new(store: &Store) {
    let mut world = World::readable(store, "a");
    world.poll(vec![post(1, "text")]);
    fetched(store, FetchedFor::World, vec![reply(2, 1)]);
    let before = thread(&world, 1, Viewer::Anonymous, ThreadLimits::STRANGER).expect("a thread");
    let in_thread = before.descendants[0].id;
    world.now_ms += 10_000;
    world.poll(vec![reply(2, 1), post(1, "text")]);
    for viewer in [Viewer::Anonymous, account(ANN)] {
        let all = timeline::Range {
            limit: 40,
            ..timeline::Range::default()
        };
        let public = world.read(move |tx| timeline::public(tx, &all, viewer));
        assert_eq!(ids(&public), [2, 1], "{viewer:?}");
        assert!(public[0].id > in_thread, "readers have passed the other");
        let after = thread(&world, 1, viewer, ThreadLimits::STRANGER).expect("a post");
        assert_eq!(after.descendants[0].id, public[0].id, "{viewer:?}");
        let found = world.read(move |tx| timeline::status(tx, in_thread, viewer));
        assert!(found.is_some(), "an ID that was shown is found");
    }
}
