//! Claims under the policy by value.

use std::{collections::HashMap, sync::Arc};

use driftline_core::refresh::{Freshness, LearnedState, Policy, RefreshPlan, ValueSettings};
use driftline_store::{block_on, refresh::Claimed, source};

use super::{HOUR_MS, LookupAnswer, MINUTE_MS, Workers, check_schedule, found, liked, state_of};
use crate::world::{START_MS, Store, World, on_both};

on_both!(
    the_most_valuable_of_the_overdue_posts_go_first,
    posts_below_the_price_are_postponed_and_not_lost,
    a_post_that_several_sources_show_grows_like_the_first_of_them,
);

/// By value, at a price in count-hours.
pub(super) fn priced(price: f64) -> Arc<Policy> {
    let plan = RefreshPlan {
        by_value: Some(ValueSettings::default()),
        ..RefreshPlan::default()
    };
    let Policy::Value { ages, mut by } = LearnedState::new(0).policy(&plan) else {
        panic!("a policy by age")
    };
    by.price = price;
    Arc::new(Policy::Value { ages, by })
}

fn the_most_valuable_of_the_overdue_posts_go_first(store: &Store) {
    let mut world = World::readable(store, "home");
    let posts = (1..=6).rev().map(|id| liked(id, 10_i64.pow(id as u32)));
    world.poll(posts.collect());
    let mut workers = Workers::of(&world);
    workers.size = 2;
    workers.policy = priced(1.0);
    // All have been due for long: the busy ones after three minutes as the others.
    let now_ms = START_MS + 10 * MINUTE_MS;
    let ids = |claim: &driftline_store::refresh::Claim| -> Vec<String> {
        let posts = claim.posts.iter();
        posts.map(|due| due.upstream_id.clone()).collect()
    };
    let first = workers.claim(now_ms);
    assert_eq!(ids(&first), ["6", "5"]);
    let due_ms: Vec<i64> = first.posts.iter().map(|due| due.due_at_ms).collect();
    assert!(due_ms.is_sorted(), "{due_ms:?}");
    let second = workers.claim(now_ms);
    assert_eq!(ids(&second), ["4", "3"], "of the posts that are free");
    workers.save(&first, &[found(6, 1_000_000), found(5, 100_000)], now_ms);
    workers.save(&second, &[found(4, 10_000), found(3, 1_000)], now_ms);
    assert_eq!(check_schedule(store), 6);
}

fn posts_below_the_price_are_postponed_and_not_lost(store: &Store) {
    let mut world = World::readable(store, "home");
    let posts = (1..=6)
        .rev()
        .map(|id| liked(id, if id == 6 { 100_000 } else { 0 }));
    world.poll(posts.collect());
    let mut workers = Workers::of(&world);
    workers.size = 6;
    workers.policy = priced(1_000.0);
    // Due by age after three minutes, by the bound of waits after six.
    let now_ms = START_MS + 5 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    assert_eq!(
        claim.posts.len(),
        1,
        "the value of the others is too low yet"
    );
    let other = workers.ask(now_ms, 30_000);
    assert!(
        matches!(other, Claimed::Until(_) | Claimed::Idle),
        "all are held: {other:?}"
    );
    let saved = workers.save(&claim, &[found(6, 100_001)], now_ms);
    assert_eq!(saved.postponed, 5);
    assert_eq!(check_schedule(store), 6);
    let postponed = state_of(&world, 1);
    assert!(postponed.due_at_ms > Some(now_ms), "{postponed:?}");
    assert_eq!(postponed.freshness.refreshes, 0, "it was not looked up");

    // A claim that is given back changes nothing.
    let later_ms = postponed.due_at_ms.unwrap_or(0) + HOUR_MS;
    workers.policy = priced(1_000_000.0);
    let claim = workers.claim(later_ms);
    block_on(workers.claims.give_back(store, claim)).expect("back");
    assert_eq!(state_of(&world, 1), postponed);
    assert_eq!(check_schedule(store), 6);
}

#[test]
fn no_post_starves_while_the_price_jumps() {
    none_starves(|turn| 10_f64.powi((turn % 7) as i32));
}

#[test]
fn no_post_starves_while_all_others_have_more_value() {
    none_starves(|_| 1e-6);
}

fn none_starves(price: impl Fn(i64) -> f64) {
    const POSTS: u64 = 24;
    const BUSY: u64 = 20;
    let likes = |id: u64, turn: i64| if id <= BUSY { 1_000_000 * turn } else { 0 };
    on_both(|store| {
        let mut world = World::readable(store, "home");
        let posts = (1..=POSTS).rev().map(|id| liked(id, likes(id, 1)));
        world.poll(posts.collect());
        let mut workers = Workers::of(&world);
        workers.size = 2;
        let mut looks: HashMap<u64, u32> = HashMap::new();
        // A request in half an hour, while most of the posts grow fast.
        for turn in 0..200_i64 {
            let now_ms = START_MS + (turn + 1) * 30 * MINUTE_MS;
            workers.policy = priced(price(turn));
            let Claimed::Batch(claim) = workers.ask(now_ms, 30_000) else {
                continue;
            };
            let answers: Vec<(u64, LookupAnswer)> = claim
                .posts
                .iter()
                .filter_map(|due| due.upstream_id.parse().ok())
                .map(|id| {
                    *looks.entry(id).or_default() += 1;
                    found(id, likes(id, turn + 2))
                })
                .collect();
            workers.save(&claim, &answers, now_ms);
            assert_eq!(check_schedule(store), POSTS as usize);
        }
        for id in 1..=POSTS {
            assert!(looks.get(&id) > Some(&1), "post {id}: {looks:?}");
        }
    });
}

fn a_post_that_several_sources_show_grows_like_the_first_of_them(store: &Store) {
    let mut one = World::readable(store, "one");
    let mut two = World::readable(store, "two");
    two.claims = one.claims.clone();
    one.poll(vec![liked(2, 0), liked(1, 0)]);
    two.poll(vec![liked(3, 0), liked(2, 0)]);
    let of = |world: &World| Some(u64::from(world.source.id));
    let first = HashMap::from([("1", of(&one)), ("2", of(&one)), ("3", of(&two))]);
    let workers = Workers::of(&one);
    let now_ms = START_MS + 10 * MINUTE_MS;
    let claim = workers.claim(now_ms);
    assert_eq!(claim.posts.len(), 3);
    for due in &claim.posts {
        let source = due.freshness.refresh_history().source;
        assert_eq!(source, first[&*due.upstream_id], "{}", due.upstream_id);
    }
    let saved = workers.save(&claim, &[found(1, 5), found(2, 5), found(3, 5)], now_ms);
    let of_two = |(before, _): &&(Freshness, Freshness)| before.source == of(&two);
    assert_eq!(saved.grown.len(), 3);
    assert_eq!(saved.grown.iter().filter(of_two).count(), 1);
    for (id, source) in &first {
        let state = state_of(&two, id.parse().expect("a number"));
        assert_eq!(state.freshness.source, *source, "{id}");
    }
    one.remove(source::LastPosts::Remove);
    let left = state_of(&two, 2).freshness.source;
    assert_eq!(left, of(&two), "the first that is left");
}
