//! Reading: Mastodon's bounds, and who sees what.

use driftline_core::post::{Post, Visibility};
use driftline_store::{
    AccountId, LocalId,
    timeline::{self, HomeRule, Range, TimelinePost, Viewer},
};

use crate::world::{Store, World, home_of, names, post, posts, with};

on_both!(
    bounds_mean_what_they_mean_in_mastodon,
    only_public_posts_are_shown_to_anyone,
    pages_of_several_authors_have_no_gap_and_no_repeat,
    pages_of_many_authors_have_no_gap_and_no_repeat,
);

fn bounds_mean_what_they_mean_in_mastodon(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts((1..=9).rev()));
    let ids: Vec<LocalId> = world.timeline().iter().rev().map(|post| post.id).collect();
    let id = |n: usize| Some(ids[n - 1]);
    let check = |range: Range, expected: &[&str]| {
        let source = world.source;
        let public = world.read(move |tx| timeline::public(tx, &range, Viewer::Anonymous));
        assert_eq!(names(&public), expected, "{range:?}");
        let list = world.read(move |tx| timeline::source(tx, source, &range, Viewer::Anonymous));
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
}

fn only_public_posts_are_shown_to_anyone(store: &Store) {
    let mut world = World::readable(store, "home");
    let of = |id: u64, visibility| with(visibility, post(id, "text"));
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
}

fn pages_of_several_authors_have_no_gap_and_no_repeat(store: &Store) {
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
    let bounds: Vec<Option<LocalId>> = all.iter().map(|post| Some(post.id)).chain([None]).collect();
    check_pages(&world, &expected, &rule, &bounds, &[1, 2, 3, 4, 5, 6, 7]);
}

fn pages_of_many_authors_have_no_gap_and_no_repeat(store: &Store) {
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
    let mut followed: Vec<AccountId> = expected.iter().filter_map(|post| post.account).collect();
    followed.sort_unstable();
    followed.dedup();
    assert_eq!(followed.len(), 40);
    followed.extend(silent(160));
    let rule = HomeRule {
        sources: Vec::new(),
        authors: followed,
    };
    let bounds = all.iter().step_by(150).map(|post| Some(post.id));
    let bounds: Vec<Option<LocalId>> = bounds.chain([None]).collect();
    check_pages(&world, &expected, &rule, &bounds, &[1, 20, 200, 400]);
}

/// Pages of a home timeline below and above each bound are those of a list of its posts.
fn check_pages(
    world: &World,
    expected: &[&TimelinePost],
    rule: &HomeRule,
    bounds: &[Option<LocalId>],
    limits: &[u16],
) {
    for (bound, limit) in bounds
        .iter()
        .flat_map(|bound| limits.iter().map(|it| (*bound, *it)))
    {
        let read = |min, max| {
            let rule = rule.clone();
            let range = Range {
                min,
                max,
                limit,
                ..Range::default()
            };
            let read = world.read(move |tx| home_of(tx, &range, Viewer::Anonymous, &rule));
            read.posts.iter().map(|post| post.id).collect::<Vec<_>>()
        };
        let ids = expected.iter().map(|post| post.id);
        let below = ids
            .clone()
            .filter(|id| bound.is_none_or(|bound| *id < bound));
        let below: Vec<LocalId> = below.take(usize::from(limit)).collect();
        assert_eq!(read(None, bound), below, "{bound:?} {limit}");
        let above = ids.rev().filter(|id| bound.is_none_or(|bound| *id > bound));
        let mut above: Vec<LocalId> = above.take(usize::from(limit)).collect();
        above.reverse();
        let min = bound.or(Some(LocalId::new(0)));
        assert_eq!(read(min, None), above, "{bound:?} {limit}");
    }
}

/// Accounts of which no post is stored.
fn silent(count: u64) -> impl Iterator<Item = AccountId> {
    (1..=count).map(|silent| AccountId::new((1 << 62) + silent))
}
