//! Workers that claim posts, ask for them in parts, and may die or dawdle at every step.

use std::{collections::HashMap, sync::Arc};

use driftline_core::{
    answer::{Failure, FailureKind, Finding, LookUps},
    post::PostKind,
    quota::{Grant, QuotaPurpose},
    refresh::{BatchRule, Bisection},
    upstream_id::UpstreamId,
};
use driftline_store::block_on;
use driftline_store::refresh::{
    AnsweredLookup, Claim, ClaimRequest, Claimed, Claims, DuePost, LookupAnswer, Shards,
    next_due_ms,
};
use rand::RngExt;

use super::{LEASE_MS, SECOND_MS, Simulation, proofs::Asker};

pub(super) struct Worker {
    /// When it acts next.
    pub(super) at_ms: i64,
    pub(super) failures: u32,
    pub(super) shard: u64,
    pub(super) asking: Option<Asking>,
}

/// A batch in a worker's hands.
pub(super) struct Asking {
    claim: Claim,
    bisection: Bisection<DuePost>,
    answers: Vec<AnsweredLookup>,
    answer: Result<LookUps, Failure>,
}

impl Simulation {
    pub(super) fn step(&mut self, at: usize) {
        let Some(asking) = self.workers[at].asking.take() else {
            return self.begin(at);
        };
        if self.rng.random_bool(self.death_share) {
            self.deaths += 1;
            self.workers[at].at_ms = self.now_ms + self.rng.random_range(0..20 * SECOND_MS);
            if self.rng.random_bool(0.3) {
                // The whole process dies, and begins again.
                self.claims = Claims::default();
                self.held = (0, 0);
                for worker in &mut self.workers {
                    worker.asking = None;
                    worker.at_ms = worker.at_ms.max(self.now_ms + SECOND_MS);
                }
            }
            return;
        }
        self.take_answer(at, asking);
    }

    /// Takes a request from the quota and a batch from the schedule, and asks.
    fn begin(&mut self, at: usize) {
        let (instance, now_ms) = (self.source.instance, self.now_ms);
        let first = self
            .store
            .read_blocking(move |tx| next_due_ms(tx, instance, Shards::ALL, now_ms))
            .unwrap();
        match first {
            None => return self.wait(at, now_ms + SECOND_MS),
            Some(due_ms) if due_ms > now_ms => {
                return self.wait(at, due_ms.min(now_ms + SECOND_MS));
            }
            Some(_) => {}
        }
        if let Grant::Until(until_ms) = self.take() {
            assert!(until_ms > now_ms, "a wait that is over");
            return self.wait(at, until_ms.min(now_ms + 5 * SECOND_MS));
        }
        let worker = &mut self.workers[at];
        worker.shard += 1;
        let ask = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(self.batch, 2 * SECOND_MS),
            shard: worker.shard,
            shards: Shards::ALL,
            holder: format!("worker {at}"),
            lease_ms: LEASE_MS,
            now_ms,
            policy: Arc::clone(&self.policy),
        };
        match block_on(self.claims.claim(&self.store, ask)).unwrap() {
            Claimed::Batch(claim) if claim.posts.is_empty() => {
                self.put_back();
                self.save(claim, Vec::new());
                self.wait(at, now_ms + 1);
            }
            Claimed::Batch(claim) => {
                self.check_disjoint(&claim);
                self.due_times.claimed(&claim, now_ms);
                let is_read = self.access.reads;
                let failures = |due: &DuePost| match due.freshness.missing && is_read {
                    // It is asked for alone before it counts as gone.
                    true => ALONE,
                    false => due.freshness.failures,
                };
                let is_after_silence = self.workers[at].failures > 0;
                let asking = Asking {
                    bisection: Bisection::new(claim.posts.clone(), failures, is_after_silence),
                    claim,
                    answers: Vec::new(),
                    answer: Err(Failure::new(FailureKind::Unreachable, "not asked yet")),
                };
                self.ask(at, asking);
            }
            Claimed::Until(until_ms) => {
                self.put_back();
                self.wait(at, until_ms.min(now_ms + SECOND_MS));
            }
            Claimed::Idle => {
                self.put_back();
                self.wait(at, now_ms + SECOND_MS);
            }
        }
    }

    /// Sends what is to be asked next, and waits for the answer.
    fn ask(&mut self, at: usize, mut asking: Asking) {
        let Some(part) = asking.bisection.part() else {
            return self.end(at, asking);
        };
        let ids: Vec<UpstreamId> = part.iter().map(id_of).collect();
        asking.answer = self.access.look_ups(&mut self.upstream, self.now_ms, &ids);
        let mut back_ms = self.upstream.received_at_ms();
        if self.rng.random_bool(self.dawdle_share) {
            back_ms += LEASE_MS + self.rng.random_range(0..LEASE_MS);
        }
        let worker = &mut self.workers[at];
        worker.at_ms = back_ms.max(self.now_ms + 1);
        worker.asking = Some(asking);
    }

    /// Takes the answer in.
    fn take_answer(&mut self, at: usize, mut asking: Asking) {
        let answer = std::mem::replace(
            &mut asking.answer,
            Err(Failure::new(FailureKind::Unreachable, "taken")),
        );
        let (throttle, is_throttled) = match &answer {
            Ok(found) => (found.headers.throttle, false),
            Err(failure) => (failure.throttle, failure.kind == FailureKind::Throttled),
        };
        self.throttled += u32::from(is_throttled);
        self.notify(move |ledger, now_ms| {
            if is_throttled {
                ledger.refused(QuotaPurpose::Refresh, throttle.as_ref(), None, 0, now_ms);
            } else {
                ledger.answered(QuotaPurpose::Refresh, throttle.as_ref(), now_ms);
            }
        });
        match answer {
            Ok(found) => {
                let part = asking.bisection.answered();
                asking.answers.extend(matched(&part, found));
            }
            Err(failure) => asking.bisection.failed(failure.kind),
        }
        self.go_on(at, asking);
    }

    /// Asks for more, or saves.
    fn go_on(&mut self, at: usize, asking: Asking) {
        let is_in_time = self.now_ms < asking.claim.until_ms - 5 * SECOND_MS;
        let may_ask =
            asking.bisection.part().is_some() && is_in_time && self.take() == Grant::Requests(1);
        if may_ask {
            return self.ask(at, asking);
        }
        self.end(at, asking);
    }

    fn end(&mut self, at: usize, asking: Asking) {
        let Asking {
            claim,
            bisection,
            mut answers,
            ..
        } = asking;
        if self.access.reads {
            let mut asker = Asker {
                store: &self.store,
                upstream: &mut self.upstream,
                access: self.access,
                source: self.source,
                now_ms: self.now_ms,
            };
            self.proofs.check(&mut asker, &claim.posts, &mut answers);
        }
        let blame = bisection.end();
        for (posts, answer) in [
            (blame.failed, LookupAnswer::Nothing),
            (blame.suspects, LookupAnswer::Suspect),
            (blame.forbidden, LookupAnswer::Hidden),
        ] {
            answers.extend(posts.into_iter().map(|due| AnsweredLookup {
                what: due.what,
                answer: answer.clone(),
                asked_at_ms: self.now_ms,
            }));
        }
        let is_silent = !answers.iter().any(|a| a.answer.is_usable());
        let wait_ms = self.pause_ms(at, is_silent);
        if answers.is_empty() {
            block_on(self.claims.give_back(&self.store, claim)).unwrap();
            return self.wait(at, self.now_ms + wait_ms);
        }
        self.hydrate(&answers);
        // Between the two commits a process may die, too.
        if self.rng.random_bool(self.death_share / 2.0) {
            self.deaths += 1;
            return self.wait(at, self.now_ms + SECOND_MS);
        }
        self.save(claim, answers);
        self.wait(at, self.now_ms + wait_ms);
    }

    /// How long a worker waits after a turn.
    fn pause_ms(&mut self, at: usize, is_silent: bool) -> i64 {
        let worker = &mut self.workers[at];
        if !is_silent {
            worker.failures = 0;
            return 1;
        }
        worker.failures = (worker.failures + 1).min(5);
        SECOND_MS << worker.failures
    }

    fn wait(&mut self, at: usize, until_ms: i64) {
        self.workers[at].at_ms = until_ms.max(self.now_ms + 1);
    }

    /// No post is in two claims that have not ended.
    fn check_disjoint(&self, claim: &Claim) {
        for worker in &self.workers {
            let Some(asking) = &worker.asking else {
                continue;
            };
            if asking.claim.until_ms <= self.now_ms {
                continue;
            }
            for due in &asking.claim.posts {
                let twice = claim.posts.iter().any(|other| other.what == due.what);
                assert!(!twice, "{} is held twice", due.upstream_id);
            }
        }
    }
}

/// More failures than any batch can be halved.
const ALONE: u32 = 31;

fn id_of(due: &DuePost) -> UpstreamId {
    UpstreamId::from(due.upstream_id.as_str())
}

fn matched(part: &[DuePost], found: LookUps) -> Vec<AnsweredLookup> {
    let asked_at_ms = found.headers.sent_at_ms;
    let mut findings: HashMap<UpstreamId, Finding> = found.findings.into_iter().collect();
    part.iter()
        .map(|due| AnsweredLookup {
            what: due.what,
            answer: match findings.remove(&id_of(due)) {
                Some(Finding::Found(post)) => LookupAnswer::Found(post),
                Some(Finding::Gone) => LookupAnswer::Gone,
                Some(Finding::Hidden) => LookupAnswer::Hidden,
                // As the server's workers find it out: no 404 of a boost is its deletion.
                Some(Finding::Missing) | None if due.kind == PostKind::Boost => {
                    LookupAnswer::Hidden
                }
                Some(Finding::Missing) | None => LookupAnswer::Missing,
            },
            asked_at_ms,
        })
        .collect()
}
