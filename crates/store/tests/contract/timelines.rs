//! Reading: Mastodon's bounds, and who sees what.

use driftline_core::post::{Post, Visibility};
use driftline_store::{
    AccountId, LocalId,
    timeline::{self, HomeRule, Range, TimelinePost, Viewer},
};

use crate::world::{World, home_of, names, on_both, post, posts};

#[test]
fn bounds_mean_what_they_mean_in_mastodon() {
    on_both(|store| {
        let mut world = World::readable(store, "home");
        world.poll(posts((1..=9).rev()));
        let ids: Vec<LocalId> = world.timeline().iter().rev().map(|post| post.id).collect();
        let id = |n: usize| Some(ids[n - 1]);
        let check = |range: Range, expected: &[&str]| {
            let source = world.source;
            let public = world.read(move |tx| timeline::public(tx, &range, Viewer::Anonymous));
            assert_eq!(names(&public), expected, "{range:?}");
            let list =
                world.read(move |tx| timeline::source(tx, source, &range, Viewer::Anonymous));
            assert_eq!(list, public);
            let all = world.read(move |tx| timeline::source(tx, source, &range, Viewer::Operator));
            assert_eq!(all, public);
        };
        let range = |since, min, max| Range {
            since,
            min,
            max,
            limit: 3,
        };
        check(range(None, None, None), &["9", "8", "7"]);
        check(range(id(2), None, None), &["9", "8", "7"]);
        check(range(id(7), None, None), &["9", "8"]);
        check(range(None, id(2), None), &["5", "4", "3"]);
        check(range(None, id(8), None), &["9"]);
        check(range(None, None, id(3)), &["2", "1"]);
        check(range(id(3), None, id(6)), &["5", "4"]);
        check(range(None, id(3), id(6)), &["5", "4"]);
        check(range(id(4), id(2), None), &["7", "6", "5"]);
        check(range(id(9), None, None), &[]);
        check(range(None, None, id(1)), &[]);
        check(
            range(None, None, Some(LocalId::new(u64::MAX))),
            &["9", "8", "7"],
        );
        check(range(Some(LocalId::new(u64::MAX)), None, None), &[]);
        check(Range::default(), &[]);
    });
}

#[test]
fn only_public_posts_are_shown_to_anyone() {
    on_both(|store| {
        let mut world = World::readable(store, "home");
        let of = |id: u64, visibility| Post {
            visibility,
            ..post(id, "text")
        };
        world.poll(vec![
            of(4, Visibility::Direct),
            of(3, Visibility::Private),
            of(2, Visibility::Unlisted),
            of(1, Visibility::Public),
        ]);
        assert_eq!(names(&world.timeline()), ["1"]);
        assert_eq!(names(&world.public()), ["1"]);
        let all = world.timeline_for(Viewer::Operator);
        assert_eq!(names(&all), ["4", "3", "2", "1"]);
        for post in all {
            let found = world.read(move |tx| timeline::status(tx, post.id, Viewer::Anonymous));
            assert_eq!(found.is_some(), post.visibility == Visibility::Public);
            let found = world.read(move |tx| timeline::status(tx, post.id, Viewer::Operator));
            assert_eq!(found, Some(post));
        }
    });
}

#[test]
fn pages_of_several_authors_have_no_gap_and_no_repeat() {
    on_both(|store| {
        let mut world = World::readable(store, "home");
        // Some write in bursts, one wrote long ago.
        let writers = [5, 1, 1, 1, 2, 3, 2, 2, 4, 4, 1, 3, 3, 3, 2, 1, 4, 2, 2, 1];
        let by = |(at, writer): (u64, u64)| {
            let mut post = post(at, "text");
            post.author.id = writer.to_string().as_str().into();
            post.author.acct = format!("writer{writer}@far.example");
            post
        };
        let written: Vec<Post> = (1..).zip(writers).map(by).collect();
        world.poll(written.into_iter().rev().collect());
        let all = world.timeline();
        assert_eq!(all.len(), writers.len());
        let mut followed: Vec<AccountId> = all.iter().filter_map(|post| post.account).collect();
        followed.sort_unstable();
        followed.dedup();
        assert_eq!(followed.len(), 5);
        let left_out = all[2].account.expect("an author");
        followed.retain(|author| *author != left_out);
        followed.extend(silent(9));
        let expected: Vec<&TimelinePost> = all
            .iter()
            .filter(|post| post.account != Some(left_out))
            .collect();
        let rule = HomeRule {
            sources: Vec::new(),
            authors: followed,
        };
        let ids: Vec<Option<LocalId>> =
            all.iter().map(|post| Some(post.id)).chain([None]).collect();
        for limit in 1..=7 {
            for &bound in &ids {
                let read = |range: Range| {
                    let rule = rule.clone();
                    let read = world.read(move |tx| home_of(tx, &range, Viewer::Anonymous, &rule));
                    read.posts.iter().map(|post| post.id).collect::<Vec<_>>()
                };
                let limited = Range {
                    limit,
                    ..Range::default()
                };
                let below = expected.iter().map(|post| post.id);
                let below = below.filter(|id| bound.is_none_or(|bound| *id < bound));
                let below: Vec<LocalId> = below.take(usize::from(limit)).collect();
                assert_eq!(
                    read(Range {
                        max: bound,
                        ..limited
                    }),
                    below
                );
                let above = expected.iter().rev().map(|post| post.id);
                let above = above.filter(|id| bound.is_none_or(|bound| *id > bound));
                let mut above: Vec<LocalId> = above.take(usize::from(limit)).collect();
                above.reverse();
                let min = bound.or(Some(LocalId::new(0)));
                assert_eq!(read(Range { min, ..limited }), above);
            }
        }
    });
}

#[test]
fn pages_of_many_authors_have_no_gap_and_no_repeat() {
    on_both(|store| {
        let mut hidden = World::new(store, "hidden");
        let mut world = World::readable(store, "home");
        // Followed are 1 to 40. They write most of the oldest posts, few of the next, none of the newest.
        let writer = |at: u64| match at {
            ..400 => 1 + at % 60,
            400..1200 => [41 + at % 50, 1 + at % 40][usize::from(at.is_multiple_of(97))],
            1200.. => 50 + at % 30,
        };
        let by = |at: u64| {
            let mut post = post(at, "text");
            let writer = writer(at);
            post.author.id = writer.to_string().as_str().into();
            post.author.acct = format!("writer{writer}@far.example");
            post
        };
        for first in (1..=1800).step_by(40) {
            let page = || (first..first + 40).map(by).rev().collect();
            world.poll(page());
            hidden.poll(page());
        }
        let all = world.timeline();
        assert_eq!(all.len(), 1800);
        let is_followed = |post: &&TimelinePost| {
            let id: u64 = post.upstream_id.parse().expect("a number");
            writer(id) <= 40
        };
        let expected: Vec<&TimelinePost> = all.iter().filter(is_followed).collect();
        assert!((250..300).contains(&expected.len()), "{}", expected.len());
        let mut followed: Vec<AccountId> =
            expected.iter().filter_map(|post| post.account).collect();
        followed.sort_unstable();
        followed.dedup();
        assert_eq!(followed.len(), 40);
        followed.extend(silent(160));
        let rule = HomeRule {
            sources: Vec::new(),
            authors: followed,
        };
        let bounds = all.iter().step_by(150).map(|post| Some(post.id));
        for bound in bounds.chain([None]) {
            for limit in [1, 20, 200, 400] {
                let read = |range: Range| {
                    let rule = rule.clone();
                    let read = world.read(move |tx| home_of(tx, &range, Viewer::Anonymous, &rule));
                    read.posts.iter().map(|post| post.id).collect::<Vec<_>>()
                };
                let limited = Range {
                    limit,
                    ..Range::default()
                };
                let max = Range {
                    max: bound,
                    ..limited
                };
                let min = Range {
                    min: bound.or(Some(LocalId::new(0))),
                    ..limited
                };
                let ids = expected.iter().map(|post| post.id);
                let below = ids
                    .clone()
                    .filter(|id| bound.is_none_or(|bound| *id < bound));
                let below: Vec<LocalId> = below.take(usize::from(limit)).collect();
                assert_eq!(read(max), below, "{bound:?} {limit}");
                let above = ids.rev().filter(|id| bound.is_none_or(|bound| *id > bound));
                let mut above: Vec<LocalId> = above.take(usize::from(limit)).collect();
                above.reverse();
                assert_eq!(read(min), above, "{bound:?} {limit}");
            }
        }
    });
}

/// Accounts of which no post is stored.
fn silent(count: u64) -> impl Iterator<Item = AccountId> {
    (1..=count).map(|silent| AccountId::new((1 << 62) + silent))
}
