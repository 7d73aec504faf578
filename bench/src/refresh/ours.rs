//! Driftline's own way: claims and saves.

use std::{
    sync::Arc,
    thread,
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
use crate::failure::Failure;

/// One worker of a process.
#[derive(Clone)]
pub(super) struct Worker {
    store: Store,
    claims: Claims,
    instance: InstanceId,
    shard: u64,
    policy: Arc<Policy>,
    now_ms: i64,
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

    /// Another one, that begins with another shard.
    fn other(&self, shard: u64) -> Self {
        Self {
            shard,
            ..self.clone()
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

    /// Lets a day pass, so that everything is due again.
    pub(super) fn sleep_a_day(&mut self) {
        self.now_ms += 24 * 3_600_000;
    }

    /// What the upstream answers.
    pub(super) fn answers(&self, claim: &Claim) -> Result<Vec<AnsweredLookup>, Failure> {
        let answer = |due: &driftline_store::refresh::DuePost| {
            let number = made::number_of(&due.upstream_id)?;
            let post = made::answer(number, &due.upstream_id)?;
            Ok(AnsweredLookup {
                what: due.what,
                answer: LookupAnswer::Found(Box::new(post)),
                asked_at_ms: self.now_ms,
            })
        };
        claim.posts.iter().map(answer).collect()
    }

    /// Answers that are all edited posts.
    pub(super) fn answers_edited(&self, claim: &Claim) -> Result<Vec<AnsweredLookup>, Failure> {
        let mut answers = self.answers(claim)?;
        for answered in &mut answers {
            if let LookupAnswer::Found(post) = &mut answered.answer {
                post.edited_at_ms = Some(self.now_ms);
                post.hashes.content = post.hashes.content.wrapping_add(1);
            }
        }
        Ok(answers)
    }

    /// What is saved when the upstream does not answer.
    pub(super) fn silence(&self, claim: &Claim) -> Vec<AnsweredLookup> {
        let nothing = |due: &driftline_store::refresh::DuePost| AnsweredLookup {
            what: due.what,
            answer: LookupAnswer::Nothing,
            asked_at_ms: self.now_ms,
        };
        claim.posts.iter().map(nothing).collect()
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
            let answers = self.answers(&claim)?;
            posts += answers.len() as u64;
            let changed = answers
                .iter()
                .filter(|a| made::is_changed(&a.answer))
                .count();
            let start = Instant::now();
            let saved = self.save(claim, answers)?;
            spent += start.elapsed();
            let updated = saved
                .outcomes
                .iter()
                .filter(|(_, o)| *o == LookupOutcome::Updated);
            if updated.count() != changed {
                return Err(Failure::new("the store took other posts for changed"));
            }
        }
    }

    /// Works all due posts off with several workers; how many, and the time.
    pub(super) fn work_off_with(&self, workers: u64) -> Result<(u64, Duration), Failure> {
        let start = Instant::now();
        let done = thread::scope(|scope| {
            let started: Vec<_> = (0..workers)
                .map(|number| {
                    let mut worker = self.other(number * 2);
                    scope.spawn(move || worker.work_off())
                })
                .collect();
            started
                .into_iter()
                .map(|worker| match worker.join() {
                    Ok(done) => done.map(|(posts, _)| posts),
                    Err(_) => Err(Failure::new("a worker panicked")),
                })
                .sum::<Result<u64, Failure>>()
        })?;
        Ok((done, start.elapsed()))
    }
}

pub(super) const BATCH: usize = 100;
