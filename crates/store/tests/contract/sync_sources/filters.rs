//! Replicas with filters: each has the posts that match, and no others.

use std::collections::BTreeSet;

use driftline_core::post::Visibility;
use driftline_store::{Store, sync::SourceLimits};

use super::{
    ALL, READERS, Upstream, home, key, keys, poll, private,
    replica::{Filter, MEMBER, Replica},
};
use crate::world::{on_both, post, with};

on_both!(
    a_post_that_leaves_the_filter_ends_where_a_replica_may_have_it,
    a_chunk_compares_a_bounded_number_of_posts,
);

/// Replicas of each reader that change their filters at any time, and read in chunks of any size between the writes.
#[test]
fn a_replica_with_a_filter_has_what_the_filter_selects_of_the_source() {
    for seed in 0..4 {
        on_both(|store| {
            let mut world = home(store);
            let mut upstream = Upstream::new(seed);
            let filters = [
                Filter::All,
                Filter::EndsWith('1'),
                Filter::EndsWith('2'),
                Filter::Of(Visibility::Public),
                Filter::Of(Visibility::Private),
            ];
            let mut replicas: Vec<Replica> = READERS.map(Replica::from_start).into();
            let mut known = READERS.map(|_| BTreeSet::new());
            let mut tombstones = 0;
            for _ in 0..60 {
                upstream.step(&mut world);
                for (by, known) in READERS.into_iter().zip(&mut known) {
                    known.extend(by.shown(&world).into_keys());
                }
                if upstream.below(8) == 0 {
                    let by = READERS[upstream.below(3)];
                    replicas.push(Replica::from_start(by));
                }
                for replica in &mut replicas {
                    if upstream.below(12) == 0 {
                        let filter = filters[upstream.below(filters.len())];
                        replica.change_filter(&world, filter);
                    }
                    let limits = SourceLimits::new(1 + upstream.below(4) as u32);
                    match upstream.below(4) {
                        0 | 1 => {
                            let chunk = replica.pull(&world, limits);
                            let (_, gone) = keys(&chunk);
                            tombstones += gone.len();
                            let at = READERS.iter().position(|by| *by == replica.by);
                            let known = &known[at.expect("a reader")];
                            assert!(gone.iter().all(|key| known.contains(*key)), "{chunk:?}");
                        }
                        2 => {
                            replica.catch_up(&world, limits);
                            assert_eq!(replica.posts, replica.expected(&world), "seed {seed}");
                        }
                        _ => {}
                    }
                }
            }
            assert!(tombstones > 0);
            for mut replica in replicas {
                replica.catch_up(&world, SourceLimits::new(3));
                let expected = replica.expected(&world);
                let (by, filter) = (replica.by, replica.filter);
                assert_eq!(replica.posts, expected, "seed {seed}: {by:?} {filter:?}");
            }
        });
    }
}

fn a_post_that_leaves_the_filter_ends_where_a_replica_may_have_it(store: &Store) {
    let mut world = home(store);
    world.poll(vec![post(2, "a"), post(1, "a")]);
    let mut replica = Replica::from_start(MEMBER);
    replica.change_filter(&world, Filter::EndsWith('a'));
    replica.catch_up(&world, ALL);
    assert_eq!(replica.posts.len(), 2);
    // One leaves the filter, one never matches, and one is not shown.
    let page = |first: &str, third: &str| {
        let fourth = private(4, "a");
        vec![fourth, post(3, third), post(2, "a"), post(1, first)]
    };
    poll(&mut world, page("b", "b"));
    let chunk = replica.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![], vec![&*key(1)]));
    // What comes into the filter is an entry. The other may be in a replica at this USN, for all that its entry tells.
    poll(&mut world, page("c", "a"));
    let chunk = replica.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![&*key(3)], vec![&*key(1)]));
    assert_eq!(replica.posts, replica.expected(&world));
    // The end of a post is told where it was, whatever the filter.
    let narrowed = with(Visibility::Private, post(2, "a"));
    let listed = vec![private(4, "a"), post(3, "a"), narrowed, post(1, "c")];
    poll(&mut world, listed);
    let chunk = replica.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![], vec![&*key(2)]));
    // Another filter is another full sync, whose end removes the rest.
    replica.change_filter(&world, Filter::EndsWith('c'));
    let chunk = replica.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![&*key(1)], vec![]));
    assert_eq!(replica.posts, replica.expected(&world));
}

fn a_chunk_compares_a_bounded_number_of_posts(store: &Store) {
    let mut world = home(store);
    for turn in 0..21 {
        let ids = turn * 100 + 1..=turn * 100 + 100;
        poll(&mut world, ids.rev().map(|id| post(id, "b")).collect());
    }
    poll(&mut world, vec![post(9_999, "a")]);
    let mut from_start = Replica::from_start(MEMBER);
    from_start.filter = Filter::EndsWith('a');
    let chunk = from_start.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![], vec![]));
    assert!(
        (2_000..2_101).contains(&chunk.end) && chunk.more,
        "{chunk:?}"
    );
    let chunk = from_start.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![&*key(9_999)], vec![]));
    let mut full = Replica::from_start(MEMBER);
    full.change_filter(&world, Filter::EndsWith('a'));
    let chunk = full.pull(&world, ALL);
    assert_eq!(keys(&chunk), (vec![&*key(9_999)], vec![]));
    assert!(chunk.more, "{chunk:?}");
    full.catch_up(&world, ALL);
    assert_eq!(full.posts, from_start.posts);
}
