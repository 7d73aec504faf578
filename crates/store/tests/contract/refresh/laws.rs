//! Law 5 under random workers: claims, saves, deaths, late saves, polls.

use driftline_core::refresh::LookupOutcome;
use driftline_sim::seeds;
use driftline_store::{
    StoreError,
    refresh::{Claim, Claimed, LookupAnswer, LookupTarget},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

use super::{MINUTE_MS, Workers, check_schedule, found, liked, local};
use crate::world::{START_MS, World, on_both};

const POSTS: u64 = 40;

/// A claim in the hands of a worker, who may die, dawdle or save.
struct Hand {
    claim: Claim,
    asked_ms: i64,
    ends_ms: i64,
    sees: i64,
}

#[test]
fn random_workers_lose_no_post_and_hold_none_twice() {
    seeds::run(8, |seed| on_both(|store| run(store, seed)));
}

fn run(store: &driftline_store::Store, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut world = World::readable(store, "home");
    world.poll((1..=POSTS).rev().map(|id| liked(id, 0)).collect());
    let mut workers = Workers::of(&world);
    workers.size = 7;
    let ids: HashMap<LookupTarget, u64> = (1..=POSTS)
        .map(|id| (LookupTarget::Stored(local(&world, id)), id))
        .collect();
    let is_rows = store.dialect() == driftline_db::Dialect::Postgres;
    let mut now_ms = START_MS + 3 * MINUTE_MS;
    let mut hands: Vec<Hand> = Vec::new();
    // The newest counts that were saved of each post, and when they were asked for.
    let mut newest: HashMap<u64, (i64, i64)> = HashMap::new();
    let mut truth = 0;
    let mut deleted = 0;
    for _ in 0..120 {
        now_ms += random.random_range(0..20_000);
        truth += 1;
        match random.random_range(0..10) {
            0..4 => {
                // Rows end by the database's clock: a lease there is over at once or not at all.
                let lease_ms = if !is_rows {
                    random.random_range(1_000..40_000)
                } else if random.random_bool(0.3) {
                    0
                } else {
                    3_600_000
                };
                if let Claimed::Batch(claim) = workers.ask(now_ms, lease_ms) {
                    for hand in hands.iter().filter(|hand| hand.ends_ms > now_ms) {
                        for due in &claim.posts {
                            let held = hand.claim.posts.iter().any(|other| other.what == due.what);
                            assert!(!held, "a post is held twice");
                        }
                    }
                    let ends_ms = now_ms + lease_ms;
                    hands.push(Hand {
                        claim,
                        asked_ms: now_ms,
                        ends_ms,
                        sees: truth,
                    });
                }
            }
            4..8 if !hands.is_empty() => {
                let hand = hands.swap_remove(random.random_range(0..hands.len()));
                let answers: Vec<(u64, LookupAnswer)> = hand
                    .claim
                    .posts
                    .iter()
                    .filter_map(|due| {
                        let id = ids[&due.what];
                        Some(match random.random_range(0..20) {
                            0 => (id, LookupAnswer::Nothing),
                            1 => (id, LookupAnswer::Missing),
                            2 => (id, LookupAnswer::Hidden),
                            3 if deleted < 5 => (id, LookupAnswer::Gone),
                            4 => return None,
                            5 => (id, LookupAnswer::Suspect),
                            _ => found(id, hand.sees),
                        })
                    })
                    .collect();
                // The save comes with the time of the worker that answers now.
                let saved = workers.try_save_at(&hand.claim, &answers, hand.asked_ms, now_ms);
                match saved {
                    Err(StoreError::LeaseLost) => {
                        assert!(hand.ends_ms <= now_ms, "a lease was lost before its end");
                    }
                    Err(error) => panic!("{error}"),
                    Ok(saved) => {
                        assert!(hand.ends_ms > now_ms, "a late holder saved");
                        for (post, outcome) in saved.outcomes {
                            let id = ids[&post];
                            match outcome {
                                LookupOutcome::Updated | LookupOutcome::Unchanged => {
                                    let before = newest.insert(id, (hand.asked_ms, hand.sees));
                                    assert!(before.is_none_or(|(at, _)| at <= hand.asked_ms));
                                }
                                LookupOutcome::Deleted => deleted += 1,
                                _ => {}
                            }
                        }
                    }
                }
            }
            8 if !hands.is_empty() => {
                // The worker dies.
                hands.swap_remove(random.random_range(0..hands.len()));
                if !is_rows {
                    // Its process with it: what it held in memory is free.
                    if random.random_bool(0.3) {
                        hands.clear();
                        workers.claims = driftline_store::refresh::Claims::default();
                        world.claims = workers.claims.clone();
                    }
                }
            }
            _ => {
                world.now_ms = now_ms;
                let id = random.random_range(1..=POSTS);
                if world.poll(vec![liked(id, truth)]).recounted > 0 {
                    newest.insert(id, (now_ms, truth));
                }
            }
        }
        check_schedule(store);
    }
    for (id, (_, favourites)) in newest {
        let state = super::state_of(&world, id);
        assert_eq!(
            state.freshness.counts.favourites,
            Some(favourites),
            "post {id}"
        );
    }
}
