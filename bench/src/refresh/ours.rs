//! Driftline's own way: claims and saves.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use driftline_core::refresh::{BatchRule, LookupOutcome, Policy};
use driftline_store::{
    InstanceId, Store, block_on,
    refresh::{
        AnsweredLookup, Claim, ClaimRequest, Claimed, Claims, LookupAnswer, Save, Saved, Shards,
    },
};

use super::made::{self, NOW_MS};
use crate::{failure::Failure, threads};

/// One worker of a process.
#[derive(Clone)]
pub(super) struct Worker {
    store: Store,
    claims: Claims,
    instance: InstanceId,
    shard: u64,
    policy: Arc<Policy>,
    pub(super) now_ms: i64,
}

impl Worker {
    pub(super) fn new(store: &Store, instance: InstanceId, policy: Policy) -> Self {
        Self {
            store: store.clone(),
            claims: Claims::default(),
            instance,
            shard: 0,
            policy: Arc::new(policy),
            now_ms: NOW_MS,
        }
    }

    /// Claims a batch; `None` if nothing is due.
    pub(super) fn claim(&mut self) -> Result<Option<Claim>, Failure> {
        let ask = ClaimRequest {
            shards: Shards::ALL,
            instance: self.instance,
            batch_rule: BatchRule::new(BATCH, 0),
            shard: self.shard,
            holder: "bench".to_owned(),
            lease_ms: 60_000,
            now_ms: self.now_ms,
            policy: Arc::clone(&self.policy),
        };
        self.shard += 1;
        match block_on(self.claims.claim(&self.store, ask))? {
            Claimed::Batch(claim) => Ok(Some(claim)),
            Claimed::Until(_) | Claimed::Idle => Ok(None),
        }
    }

    /// An answer for each post of a claim, by its upstream ID.
    pub(super) fn answers(
        &self,
        claim: &Claim,
        answer: impl Fn(&str) -> Result<LookupAnswer, Failure>,
    ) -> Result<Vec<AnsweredLookup>, Failure> {
        let answers = claim.posts.iter().map(|due| {
            Ok(AnsweredLookup {
                what: due.what,
                answer: answer(&due.upstream_id)?,
                asked_at_ms: self.now_ms,
            })
        });
        answers.collect()
    }

    /// Saves answers and schedules the posts again.
    pub(super) fn save(
        &self,
        claim: Claim,
        answers: Vec<AnsweredLookup>,
    ) -> Result<Saved, Failure> {
        let save = Save {
            claim,
            answers,
            put_off: Vec::new(),
            policy: Arc::clone(&self.policy),
            keep_deleted: true,
            now_ms: self.now_ms,
            random: 1,
        };
        Ok(block_on(self.claims.save(&self.store, save))?)
    }

    /// Works all due posts off; how many, and the time in claims and saves alone.
    pub(super) fn work_off(&mut self) -> Result<(u64, Duration), Failure> {
        let (mut posts, mut spent) = (0, Duration::ZERO);
        loop {
            let start = Instant::now();
            let claim = self.claim()?;
            spent += start.elapsed();
            let Some(claim) = claim else {
                return Ok((posts, spent));
            };
            let answers = self.answers(&claim, |id| {
                Ok(LookupAnswer::Found(Box::new(made::answer(id)?)))
            })?;
            posts += answers.len() as u64;
            let changed = answers
                .iter()
                .filter(|answered| made::is_changed(&answered.answer));
            let changed = changed.count();
            let start = Instant::now();
            let saved = self.save(claim, answers)?;
            spent += start.elapsed();
            let is_updated = |outcome: &LookupOutcome| *outcome == LookupOutcome::Updated;
            let outcomes = saved.outcomes.iter();
            if outcomes.filter(|(_, outcome)| is_updated(outcome)).count() != changed {
                return Err(Failure::new("the store took other posts for changed"));
            }
        }
    }

    /// Works all due posts off with several workers; how many, and the time.
    pub(super) fn work_off_with(&self, workers: u64) -> Result<(u64, Duration), Failure> {
        let start = Instant::now();
        let done = threads::each(0..workers, |number| {
            let mut worker = Self {
                shard: number * 2,
                ..self.clone()
            };
            worker.work_off()
        })?;
        Ok((done.iter().map(|(posts, _)| posts).sum(), start.elapsed()))
    }
}

pub(super) const BATCH: usize = 100;
