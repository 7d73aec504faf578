//! Refresh: due times, claims, leases, saves, notified libraries.

mod clocks;
mod fill;
mod laws;
mod outcomes;
mod pending_lookup;
mod pipeline;
mod recount;
mod unrefreshed;
mod value;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use driftline_core::{
    post::{Counts, Post},
    refresh::{BatchRule, Policy},
};
use driftline_store::{
    InstanceId, LocalId, Root, Store, StoreError, block_on,
    refresh::{
        AnsweredLookup, Claim, ClaimRequest, Claimed, Claims, LookupAnswer, LookupTarget,
        RefreshState, Save, Saved, Shards, claimed_slots, refresh_state,
    },
};

use crate::world::{World, hashed, post, write};

pub(crate) const MINUTE_MS: i64 = 60_000;
pub(crate) const HOUR_MS: i64 = 60 * MINUTE_MS;
const LEASE_MS: i64 = 30_000;

/// A post with that many favourites.
pub(crate) fn liked(id: u64, favourites: i64) -> Post {
    let mut post = post(id, "text");
    post.counts = Counts {
        favourites: Some(favourites),
        ..Counts::default()
    };
    post.raw = post
        .raw
        .replace("_count\":0", &format!("_count\":{favourites}"));
    hashed(post)
}

/// A readable source after a poll of these posts, and its workers.
pub(crate) fn polled(store: &Store, posts: Vec<Post>) -> (World, Workers) {
    let mut world = World::readable(store, "home");
    world.poll(posts);
    let workers = Workers::of(&world);
    (world, workers)
}

/// Workers of one process.
pub(crate) struct Workers {
    pub(crate) store: Store,
    pub(crate) claims: Claims,
    pub(crate) instance: InstanceId,
    pub(crate) size: usize,
    pub(crate) keep_deleted: bool,
    pub(crate) policy: Arc<Policy>,
    /// How many claims were requested.
    asked: AtomicU64,
}

impl Workers {
    pub(crate) fn of(world: &World) -> Workers {
        let source = world.source;
        let instance = source.instance;
        Workers {
            store: world.store.clone(),
            claims: world.claims.clone(),
            instance,
            size: 100,
            keep_deleted: true,
            policy: Arc::default(),
            asked: AtomicU64::new(0),
        }
    }

    pub(crate) fn ask(&self, now_ms: i64, lease_ms: i64) -> Claimed {
        self.ask_as("worker", now_ms, lease_ms)
    }

    pub(crate) fn ask_as(&self, holder: &str, now_ms: i64, lease_ms: i64) -> Claimed {
        let ask = ClaimRequest {
            instance: self.instance,
            batch_rule: BatchRule::new(self.size, 2_000),
            shard: self.asked.fetch_add(1, Ordering::Relaxed),
            shards: Shards::ALL,
            holder: holder.to_owned(),
            lease_ms,
            now_ms,
            policy: Arc::clone(&self.policy),
        };
        block_on(self.claims.claim(&self.store, ask)).expect("a claim")
    }

    pub(crate) fn claim(&self, now_ms: i64) -> Claim {
        match self.ask(now_ms, LEASE_MS) {
            Claimed::Batch(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn try_save(
        &self,
        claim: &Claim,
        answers: &[(u64, LookupAnswer)],
        asked_at_ms: i64,
    ) -> Result<Saved, StoreError> {
        self.try_save_at(claim, answers, asked_at_ms, asked_at_ms + 200)
    }

    pub(crate) fn try_save_at(
        &self,
        claim: &Claim,
        answers: &[(u64, LookupAnswer)],
        asked_at_ms: i64,
        now_ms: i64,
    ) -> Result<Saved, StoreError> {
        let by_id: HashMap<String, LookupTarget> = claim
            .posts
            .iter()
            .map(|due| (due.upstream_id.clone(), due.what))
            .collect();
        let answers = answers
            .iter()
            .filter_map(|(id, answer)| {
                let mut answer = answer.clone();
                if let LookupAnswer::Found(post) = &mut answer {
                    **post = hashed((**post).clone());
                }
                Some(AnsweredLookup {
                    what: *by_id.get(&id.to_string())?,
                    answer,
                    asked_at_ms,
                })
            })
            .collect();
        let save = Save {
            claim: claim.clone(),
            answers,
            put_off: Vec::new(),
            policy: Arc::clone(&self.policy),
            keep_deleted: self.keep_deleted,
            now_ms,
            random: 0,
        };
        block_on(self.claims.save(&self.store, save))
    }

    pub(crate) fn save(
        &self,
        claim: &Claim,
        answers: &[(u64, LookupAnswer)],
        asked_at_ms: i64,
    ) -> Saved {
        self.try_save(claim, answers, asked_at_ms).expect("a save")
    }

    /// Looks up everything that is due, and saves it.
    pub(crate) fn refresh(&self, answers: &[(u64, LookupAnswer)], now_ms: i64) -> Saved {
        let claim = self.claim(now_ms);
        self.save(&claim, answers, now_ms)
    }
}

pub(crate) fn found(id: u64, favourites: i64) -> (u64, LookupAnswer) {
    (id, LookupAnswer::Found(Box::new(liked(id, favourites))))
}

/// The local ID of a post of the world's timeline.
pub(crate) fn local(world: &World, id: u64) -> LocalId {
    let id = id.to_string();
    world.read(move |tx| {
        let id = tx.query_one(
            "select post_id from upstream_post where upstream_id = $1",
            &[&id],
            |row| row.i64(0),
        )?;
        Ok(LocalId::try_from(id).expect("an ID"))
    })
}

pub(crate) fn state_of(world: &World, id: u64) -> RefreshState {
    let post = local(world, id);
    world
        .read(move |tx| refresh_state(tx, post))
        .expect("a state")
}

/// Law 5 as the tables hold it: a post with a due time has one slot, or is in one lease, and
/// nothing else is scheduled. Returns how many posts are scheduled.
pub(crate) fn check_schedule(store: &Store) -> usize {
    write(store, Root::none(), |tx| {
        let due: HashMap<i64, i64> = tx
            .query(
                "select post_id, due_at_ms from freshness where due_at_ms is not null",
                &[],
                |row| Ok((row.i64(0)?, row.i64(1)?)),
            )?
            .into_iter()
            .collect();
        let claimed = claimed_slots(tx.dialect());
        let slots: Vec<(i64, i64)> = tx.query(
            &format!(
                "select post_id, due_at_ms from schedule
                     union all select post_id, due_at_ms from ({claimed}) as claimed"
            ),
            &[],
            |row| Ok((row.i64(0)?, row.i64(1)?)),
        )?;
        let count = slots.len();
        let by_post: HashMap<i64, i64> = slots.into_iter().collect();
        assert_eq!(by_post.len(), count, "a post is scheduled twice");
        assert_eq!(by_post, due);
        Ok::<_, StoreError>(count)
    })
}
