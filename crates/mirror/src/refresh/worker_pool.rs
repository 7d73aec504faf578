//! The workers of one instance.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use driftline_core::{
    answer::{Failure, FailureKind},
    refresh::BatchRule,
    timeline::backoff_ms,
};
use driftline_runtime::{Weight, now_ms, random, show_ms, steady_ms};
use driftline_store::{
    StoreError,
    instance::Instance,
    refresh::{Claim, ClaimRequest, Claimed, Shards, next_due_ms},
};
use driftline_upstream::look_ups;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Shared,
    batch_ability::BatchAbility,
    claim_parts::ClaimParts,
    credential_pool::{self, Chosen},
    cross_check, gone_check,
    look_up::{self, Deadlines, LookupAnswers},
    lookup_client::LookupClient,
    saving::save,
};
use crate::quotas::Charge;

/// The workers of one instance.
pub(crate) struct WorkerPool {
    workers: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    pub(crate) fn start(shared: &Arc<Shared>, instance: &Instance) -> Self {
        let workers = (0..shared.options.workers.max(1)).map(|_| {
            let worker = Worker::new(shared, instance);
            tokio::spawn(worker.run())
        });
        Self {
            workers: workers.collect(),
        }
    }

    /// Whether a worker has ended, which happens only by a panic.
    pub(crate) fn is_broken(&self) -> bool {
        self.workers.iter().any(JoinHandle::is_finished)
    }

    pub(crate) async fn end(self) {
        for worker in self.workers {
            let _ = worker.await;
        }
    }
}

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) instance: Instance,
    /// The worker's unique name on its claims.
    holder: String,
    /// Whether the store may have a claim in its name that it does not know of or could not release.
    may_hold: bool,
    shard: u64,
    /// The shards of its instance that it looks at in this turn.
    shards: Shards,
    pub(super) batch: BatchAbility,
    /// Failures of the upstream in a row.
    failures: u32,
    /// The end of the pause after a failure, ms by the process's monotonic clock.
    paused_until_ms: i64,
}

/// The result of a turn.
enum Turn {
    /// A batch was saved: there may be more.
    Saved,
    /// Nothing to do before this, Unix ms.
    Until(i64),
    /// Nothing is due before this, Unix ms.
    NothingDue(i64),
}

impl Worker {
    fn new(shared: &Arc<Shared>, instance: &Instance) -> Self {
        static WORKERS: AtomicU64 = AtomicU64::new(1);
        let number = WORKERS.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(shared),
            instance: instance.clone(),
            holder: format!("{}/{number}", shared.options.holder),
            may_hold: false,
            shard: random(),
            shards: Shards::NONE,
            batch: BatchAbility::new(instance.api),
            failures: 0,
            paused_until_ms: 0,
        }
    }

    async fn run(mut self) {
        let mut stop = self.shared.stopped();
        while !*stop.borrow() {
            let turn = self.turn(&mut stop).await;
            self.log(turn.as_ref().err());
            let until_ms = match turn {
                Ok(Turn::Saved) => continue,
                Ok(Turn::NothingDue(until_ms)) => {
                    tokio::select! {
                        _ = stop.changed() => {}
                        () = self.shared.due_watch.sleep(self.instance.id, until_ms) => {}
                        () = self.shared.shards_change(self.instance.id, self.shards) => {}
                    }
                    continue;
                }
                Ok(Turn::Until(until_ms)) => until_ms,
                Err(_) => now_ms() + STORE_PAUSE_MS,
            };
            // New credentials are noticed within a second, except during a pause.
            let pause_ms = self.paused_until_ms.saturating_sub(steady_ms());
            let wait_ms = until_ms.saturating_sub(now_ms());
            let wait_ms = wait_ms.clamp(1, MAX_WAIT_MS.max(pause_ms));
            let wait = Duration::from_millis(wait_ms.unsigned_abs());
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        if let Err(error) = self.release_leftovers().await {
            tracing::info!(instance = %self.instance.origin, %error, "a claim was not released; it will expire");
        }
    }

    /// Logs the result of a turn. An outage of the store is logged once for all workers.
    fn log(&self, error: Option<&StoreError>) {
        let (instance, now) = (&self.instance, now_ms());
        match error {
            None => {
                if let Some(failed_ms) = self.shared.faults.succeeded(&instance.id, now) {
                    tracing::warn!(instance = %instance.origin, "posts are refreshed again, after {}", show_ms(failed_ms));
                }
            }
            Some(error) if self.shared.access.store_fault.takes(error) => {}
            Some(error) => {
                let weight = Weight::Lasting;
                if self.shared.faults.failed(instance.id, weight, now) {
                    tracing::warn!(instance = %instance.origin, %error, "refreshing failed; trying again");
                }
            }
        }
    }

    /// Releases a claim whose answer was lost or that could not be released: between turns a worker
    /// holds no claims.
    async fn release_leftovers(&mut self) -> Result<(), StoreError> {
        if !self.may_hold {
            return Ok(());
        }
        let (instance, holder) = (self.instance.id, self.holder.clone());
        let shared = &self.shared;
        shared
            .access
            .claims
            .give_back_of(&shared.store, instance, holder)
            .await?;
        self.may_hold = false;
        Ok(())
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Turn, StoreError> {
        self.release_leftovers().await?;
        if self.shared.access.store_disk.low().is_some() {
            return Ok(Turn::Until(now_ms() + MAX_WAIT_MS));
        }
        let instance = self.instance.id;
        let now = now_ms();
        self.shards = self.shared.shards(instance);
        if self.shards.is_empty() {
            return Ok(Turn::NothingDue(i64::MAX));
        }
        let shards = self.shards;
        let first_due_ms = self
            .shared
            .store
            .read(move |tx| next_due_ms(tx, instance, shards, now))
            .await?;
        match first_due_ms {
            None => return Ok(Turn::NothingDue(i64::MAX)),
            Some(due_ms) if due_ms > now_ms() => return Ok(Turn::NothingDue(due_ms)),
            Some(_) => {}
        }
        // Before the choice of a credential, whose charge depends on the batch size.
        self.recall_batch().await?;
        let has_batch = self.batch.has_it();
        let first = match credential_pool::choose(&self.shared, &self.instance, has_batch).await? {
            Ok(first) => first,
            Err(until_ms) => return Ok(Turn::Until(until_ms)),
        };
        let claim = match self.claim().await {
            Ok(Claimed::Batch(claim)) => claim,
            other => {
                self.may_hold = other.is_err();
                put_back(first).await?;
                return other.map(|claimed| match claimed {
                    Claimed::Until(until_ms) => Turn::Until(until_ms),
                    Claimed::Idle | Claimed::Batch(_) => Turn::Until(i64::MAX),
                });
            }
        };
        let held = claim.clone();
        let done = if claim.posts.is_empty() {
            self.schedule_again(claim, first).await
        } else {
            tokio::select! {
                done = self.refresh(claim, first) => done,
                _ = stop.changed() => Ok(Turn::Until(0)),
            }
        };
        // A save ends the claim. After anything else, its posts should not wait until it expires.
        if !matches!(done, Ok(Turn::Saved)) {
            let (claims, store) = (&self.shared.access.claims, &self.shared.store);
            let given = claims.give_back(store, held).await;
            self.may_hold = given.is_err();
            given?;
        }
        done
    }

    /// Saves a claim without posts, which needs no look-up.
    async fn schedule_again(
        &self,
        claim: Claim,
        first: Option<(LookupClient, Charge)>,
    ) -> Result<Turn, StoreError> {
        put_back(first).await?;
        save(&self.shared, &self.instance, claim, Default::default()).await?;
        Ok(Turn::Saved)
    }

    /// Looks up each post of a claim with a credential that may ask for it, and saves the answers.
    async fn refresh(
        &mut self,
        claim: Claim,
        first: Option<(LookupClient, Charge)>,
    ) -> Result<Turn, StoreError> {
        let deadlines = self.deadlines();
        let mut parts = ClaimParts::new(&claim);
        if let Some((lookup_client, charge)) = first {
            match parts.of(&lookup_client) {
                part if part.posts.is_empty() => lookup_client.quota.put_back(charge).await?,
                part => {
                    self.look_up_part(&mut parts, &part, (&lookup_client, charge), deadlines)
                        .await?;
                }
            }
        }
        let deadlines = Deadlines {
            last_ms: deadlines.over_ms,
            ..deadlines
        };
        while let Some(access) = parts.next_access()
            && !deadlines.have_passed()
        {
            let size = self.batch_size();
            match credential_pool::choose_for(&self.shared, &self.instance, &access, size).await? {
                Chosen::Client(lookup_client, charge) => {
                    let part = parts.of(&lookup_client);
                    self.look_up_part(&mut parts, &part, (&lookup_client, charge), deadlines)
                        .await?;
                }
                Chosen::Until(until_ms) => parts.put_off(&access, until_ms),
                Chosen::NoCredential => parts.without_credential(&access, now_ms()),
            }
        }
        let ClaimParts {
            answers,
            put_off,
            until_ms,
            is_answered,
            ..
        } = parts;
        if is_answered || !answers.is_empty() || !put_off.is_empty() {
            save(&self.shared, &self.instance, claim, (answers, put_off)).await?;
        }
        Ok(match until_ms {
            _ if is_answered => Turn::Saved,
            until_ms => Turn::Until(until_ms.unwrap_or_default()),
        })
    }

    /// Looks up a part of a claim with one credential.
    async fn look_up_part(
        &mut self,
        parts: &mut ClaimParts<'_>,
        part: &Claim,
        (lookup_client, charge): (&LookupClient, Charge),
        deadlines: Deadlines,
    ) -> Result<(), StoreError> {
        let charge = match self.knows_batch(part, lookup_client, charge).await? {
            Ok(charge) => charge,
            Err(until_ms) => {
                parts.failed(lookup_client, part, until_ms);
                return Ok(());
            }
        };
        let found = self.look_up(part, lookup_client, charge, deadlines).await?;
        let (kind, is_silent) = (found.kind(), found.is_silent());
        if let Some(failure) = &found.failure {
            self.log_failure(lookup_client, failure);
        }
        // A look-up of several posts may have been removed.
        if kind == Some(FailureKind::NotFound) && self.batch.has_it() {
            self.forget_batch().await?;
        }
        if !is_silent {
            self.failures = 0;
            let id = self.instance.id;
            self.shared
                .count(id, |refresh_stats| refresh_stats.failure = None);
        }
        match kind {
            Some(kind) if is_silent => {
                let until_ms = self.after_failure(kind);
                parts.answers.extend(found.answers);
                parts.failed(lookup_client, part, until_ms);
            }
            _ => parts.answered(part, found.answers),
        }
        Ok(())
    }

    pub(super) fn log_failure(&self, lookup_client: &LookupClient, failure: &Failure) {
        tracing::info!(
            instance = %self.instance.origin,
            credential = %lookup_client.credential().name,
            kind = %failure.kind,
            "{}", failure.message
        );
        self.shared.count(self.instance.id, |refresh_stats| {
            refresh_stats.failure = Some(failure.message.clone());
        });
    }

    /// Looks up a claim's posts with one credential, and with others the posts that it could not see.
    async fn look_up(
        &self,
        claim: &Claim,
        lookup_client: &LookupClient,
        charge: Charge,
        mut deadlines: Deadlines,
    ) -> Result<LookupAnswers, StoreError> {
        let shared = &self.shared;
        let (posts, unfindable) = gone_check::findable(shared, lookup_client, claim).await?;
        let is_after_silence = self.failures > 0;
        let mut found = look_up::look_up(
            shared,
            lookup_client,
            charge,
            &posts,
            deadlines,
            is_after_silence,
        )
        .await?;
        gone_check::learn(shared, lookup_client, &found.answers).await?;
        let id = lookup_client.credential().id;
        if let Some(failure) = &mut found.failure
            && shared.refusals.are_too_many(id, &found.refused)
        {
            // The credential is rejected: no post is blamed.
            failure.kind = FailureKind::Unauthorized;
            lookup_client.failed(Charge::default(), failure).await?;
            found.answers.clear();
            return Ok(found);
        }
        deadlines.last_ms = deadlines.over_ms;
        // After an outage they are due as they were.
        if found.failure.is_none() || !found.is_silent() {
            found.answers.extend(unfindable);
        }
        let (instance, answers) = (&self.instance, found.answers);
        let mut confirmed =
            cross_check::confirm(shared, instance, lookup_client, claim, answers, deadlines)
                .await?;
        gone_check::check(shared, lookup_client, claim, &mut confirmed, deadlines).await?;
        found.answers = confirmed.answers;
        Ok(found)
    }

    /// The deadlines of the look-ups of a claim that was taken now.
    fn deadlines(&self) -> Deadlines {
        let time_ms = |share: f64| {
            let time = self.shared.options.lease.mul_f64(share);
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        };
        let now = steady_ms();
        Deadlines {
            last_ms: now.saturating_add(time_ms(FIRST_SHARE)),
            over_ms: now.saturating_add(time_ms(LOOK_UP_SHARE)),
        }
    }

    /// How many posts a request may ask for.
    fn batch_size(&self) -> usize {
        look_ups(self.instance.api, self.batch.has_it()).1
    }

    async fn claim(&mut self) -> Result<Claimed, StoreError> {
        let instance = self.instance.id;
        let size = self.batch_size();
        let options = &self.shared.options;
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.shard = self.shard.wrapping_add(1);
        let policy = self.shared.access.policies.of(instance);
        let ask = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(size, ms(options.buffer_ttl)),
            shard: self.shard,
            shards: self.shards,
            holder: self.holder.clone(),
            lease_ms: ms(options.lease),
            now_ms: now_ms(),
            policy,
        };
        self.shared
            .access
            .claims
            .claim(&self.shared.store, ask)
            .await
    }

    /// Begins a pause, where the ledger and the quarantine do not know when to go on. Returns its end,
    /// Unix ms.
    pub(super) fn after_failure(&mut self, kind: FailureKind) -> i64 {
        if let FailureKind::Throttled | FailureKind::Capped | FailureKind::Unauthorized = kind {
            return 0;
        }
        self.failures = self.failures.saturating_add(1);
        let pause_ms = backoff_ms(FAILURE_PAUSE_MS, self.failures, random());
        let pause_ms = pause_ms.min(MAX_PAUSE_MS);
        self.paused_until_ms = steady_ms() + pause_ms;
        now_ms() + pause_ms
    }
}

/// Gives back what was taken from a quota for nothing.
async fn put_back(first: Option<(LookupClient, Charge)>) -> Result<(), StoreError> {
    match first {
        Some((lookup_client, charge)) => lookup_client.quota.put_back(charge).await,
        None => Ok(()),
    }
}

const MAX_WAIT_MS: i64 = 1_000;
const STORE_PAUSE_MS: i64 = 1_000;
const FAILURE_PAUSE_MS: i64 = 1_000;
/// The end of an outage of the upstream is noticed within this, ms.
const MAX_PAUSE_MS: i64 = 60_000;
/// The share of a claim's time for look-ups: the rest is for saving.
const LOOK_UP_SHARE: f64 = 2.0 / 3.0;
/// The share of a claim's time in which requests with the first credential may begin: the rest is for
/// the others.
const FIRST_SHARE: f64 = LOOK_UP_SHARE * 2.0 / 3.0;

#[cfg(test)]
mod owners_tests;
#[cfg(test)]
mod tests;
