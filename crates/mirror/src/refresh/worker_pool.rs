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
    api::Api,
    refresh::{BatchRule, may_blame_posts},
    timeline::backoff_ms,
    upstream_id::UpstreamId,
};
use driftline_runtime::{Weight, now_ms, random, show_ms};
use driftline_store::{
    Root, StoreError,
    instance::{Instance, forget_batch_look_up, has_batch_look_up, set_batch_look_up},
    refresh::{Claim, ClaimRequest, Claimed, next_due_ms},
};
use driftline_upstream::Upstream;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Shared,
    batch_ability::BatchAbility,
    credential_pool::CredentialPool,
    cross_check,
    look_up::{self, Deadlines, LookupAnswers},
    lookup_client::LookupClient,
    saving::save,
};
use crate::quotas::{Charge, Permit};

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

struct Worker {
    shared: Arc<Shared>,
    instance: Instance,
    /// The worker's unique name on its claims.
    holder: String,
    /// Whether the store may have a claim in its name that it does not know of or could not release.
    may_hold: bool,
    shard: u64,
    batch: BatchAbility,
    /// Failures of the upstream in a row.
    failures: u32,
    /// The end of the pause after a failure, Unix ms.
    paused_until_ms: i64,
    credential_pool: CredentialPool,
}

/// The result of a turn.
enum Turn {
    /// A batch was saved: there may be more.
    Saved,
    /// Nothing to do before this, Unix ms.
    Until(i64),
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
            batch: BatchAbility::default(),
            failures: 0,
            paused_until_ms: 0,
            credential_pool: CredentialPool::new(instance),
        }
    }

    async fn run(mut self) {
        let mut stop = self.shared.stopped();
        while !*stop.borrow() {
            let turn = self.turn(&mut stop).await;
            self.log(turn.as_ref().err());
            let until_ms = match turn {
                Ok(Turn::Saved) => continue,
                Ok(Turn::Until(until_ms)) => until_ms,
                Err(_) => now_ms() + STORE_PAUSE_MS,
            };
            // New posts and new credentials are noticed within a second, except during a pause.
            let now = now_ms();
            let max_ms = MAX_WAIT_MS.max(self.paused_until_ms.saturating_sub(now));
            let wait_ms = until_ms.saturating_sub(now).clamp(1, max_ms);
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
            .claims
            .give_back_of(&shared.store, instance, holder)
            .await?;
        self.may_hold = false;
        Ok(())
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Turn, StoreError> {
        self.release_leftovers().await?;
        let instance = self.instance.id;
        let now = now_ms();
        let first_due_ms = self
            .shared
            .read(move |tx| next_due_ms(tx, instance, now))
            .await?;
        match first_due_ms {
            None => return Ok(Turn::Until(i64::MAX)),
            Some(due_ms) if due_ms > now_ms() => return Ok(Turn::Until(due_ms)),
            Some(_) => {}
        }
        // Before the choice of a credential, whose charge depends on the batch size.
        self.recall_batch().await?;
        let has_batch = self.batch.has_it();
        let (lookup_client, charge) =
            match self.credential_pool.choose(&self.shared, has_batch).await? {
                Ok(chosen) => chosen,
                Err(until_ms) => return Ok(Turn::Until(until_ms)),
            };
        let claim = match self.claim(&lookup_client.client).await {
            Ok(Claimed::Batch(claim)) => claim,
            Ok(Claimed::Until(until_ms)) => {
                lookup_client.put_back(&self.shared, charge).await?;
                return Ok(Turn::Until(until_ms));
            }
            Ok(Claimed::Idle) => {
                lookup_client.put_back(&self.shared, charge).await?;
                return Ok(Turn::Until(i64::MAX));
            }
            Err(error) => {
                self.may_hold = true;
                lookup_client.put_back(&self.shared, charge).await?;
                return Err(error);
            }
        };
        let held = claim.clone();
        let done = if claim.posts.is_empty() {
            self.schedule_again(claim, &lookup_client, charge).await
        } else {
            tokio::select! {
                done = self.refresh(claim, &lookup_client, charge) => done,
                _ = stop.changed() => Ok(Turn::Until(0)),
            }
        };
        // A save ends the claim. After anything else, its posts should not wait until it expires.
        if !matches!(done, Ok(Turn::Saved)) {
            let (claims, store) = (&self.shared.claims, &self.shared.store);
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
        lookup_client: &LookupClient,
        charge: Charge,
    ) -> Result<Turn, StoreError> {
        lookup_client.put_back(&self.shared, charge).await?;
        save(&self.shared, &self.instance, claim, Vec::new()).await?;
        Ok(Turn::Saved)
    }

    async fn refresh(
        &mut self,
        claim: Claim,
        lookup_client: &LookupClient,
        charge: Charge,
    ) -> Result<Turn, StoreError> {
        let credential = &lookup_client.credential;
        let charge = match self.knows_batch(&claim, lookup_client, charge).await? {
            Ok(charge) => charge,
            Err(until_ms) => return Ok(Turn::Until(until_ms)),
        };
        let found = self.look_up(&claim, lookup_client, charge).await?;
        if let Some(failure) = &found.failure {
            tracing::info!(
                instance = %self.instance.origin,
                credential = %credential.name,
                kind = %failure.kind,
                "{}", failure.message
            );
        }
        if found.answers.is_empty() && found.failure.is_some() {
            let kind = found.failure.map(|failure| failure.kind);
            self.forget_obsolete(kind, lookup_client).await?;
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        let kind = found.failure.as_ref().map(|failure| failure.kind);
        let is_silent = !found
            .answers
            .iter()
            .any(|answered| answered.answer.is_usable());
        if !is_silent {
            self.failures = 0;
            if credential.quarantine.is_some() {
                self.shared.access.quotas.restore(credential).await?;
            }
        }
        save(&self.shared, &self.instance, claim, found.answers).await?;
        self.forget_obsolete(kind, lookup_client).await?;
        if is_silent && kind.is_some() {
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        Ok(Turn::Saved)
    }

    /// Looks up a claim's posts with one credential, and with others the posts that it could not see.
    async fn look_up(
        &mut self,
        claim: &Claim,
        lookup_client: &LookupClient,
        charge: Charge,
    ) -> Result<LookupAnswers, StoreError> {
        let (shared, now) = (&self.shared, now_ms());
        let time_ms = |share: f64| {
            let time = shared.options.lease.mul_f64(share);
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        };
        let mut deadlines = Deadlines {
            last_ms: now.saturating_add(time_ms(FIRST_SHARE)),
            over_ms: now.saturating_add(time_ms(LOOK_UP_SHARE)),
        };
        let posts: Vec<_> = claim.posts.iter().collect();
        let is_after_silence = self.failures > 0;
        let found = look_up::look_up(
            shared,
            lookup_client,
            charge,
            &posts,
            deadlines,
            is_after_silence,
        )
        .await?;
        if let Some(refused) = self.quarantine(lookup_client, &found).await? {
            return Ok(refused);
        }
        deadlines.last_ms = deadlines.over_ms;
        let credential_pool = &mut self.credential_pool;
        let answers = cross_check::confirm(
            shared,
            credential_pool,
            lookup_client,
            claim,
            found.answers,
            deadlines,
        )
        .await?;
        Ok(LookupAnswers { answers, ..found })
    }

    /// Quarantines a credential that was refused (403) too many posts in a row, and blames none of them.
    async fn quarantine(
        &self,
        lookup_client: &LookupClient,
        found: &LookupAnswers,
    ) -> Result<Option<LookupAnswers>, StoreError> {
        let (refusals, id) = (&self.shared.refusals, lookup_client.credential.id);
        let Some(failure) = &found.failure else {
            return Ok(None);
        };
        if found.refused.is_empty() || !refusals.are_too_many(id, &found.refused) {
            return Ok(None);
        }
        refusals.answered(id);
        let failure = Failure {
            kind: FailureKind::Unauthorized,
            ..failure.clone()
        };
        lookup_client.failed(&self.shared, &failure).await?;
        Ok(Some(LookupAnswers {
            failure: Some(failure),
            ..LookupAnswers::default()
        }))
    }

    /// Loads what other workers found out about the look-up of several posts.
    async fn recall_batch(&mut self) -> Result<(), StoreError> {
        if !self.batch.is_unknown() {
            return Ok(());
        }
        let instance = self.instance.id;
        let known = self
            .shared
            .read(move |tx| has_batch_look_up(tx, instance))
            .await?;
        if let Some(known) = known {
            self.batch = BatchAbility::remembered(known, now_ms());
        }
        Ok(())
    }

    async fn claim(&mut self, client: &Upstream) -> Result<Claimed, StoreError> {
        let instance = self.instance.id;
        let size = client.look_up_limit(self.batch.has_it());
        let options = &self.shared.options;
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.shard = self.shard.wrapping_add(1);
        let policy = self.shared.access.policies.of(instance);
        let ask = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(size, ms(options.buffer_ttl)),
            shard: self.shard,
            holder: self.holder.clone(),
            lease_ms: ms(options.lease),
            now_ms: now_ms(),
            policy,
        };
        self.shared.claims.claim(&self.shared.store, ask).await
    }

    /// Checks whether the upstream has a look-up of several posts, if that is unknown or was checked
    /// long ago. The check uses the request that was taken, and takes another one for the look-up.
    /// Returns the charge of the look-up, or until when there is no quota, Unix ms.
    async fn knows_batch(
        &mut self,
        claim: &Claim,
        lookup_client: &LookupClient,
        charge: Charge,
    ) -> Result<Result<Charge, i64>, StoreError> {
        let due = claim.posts.first();
        let Some(due) = due.filter(|_| self.batch.is_check_due(now_ms())) else {
            return Ok(Ok(charge));
        };
        if self.instance.api != Api::Mastodon {
            // The other APIs always have it, and nothing is asked.
            self.found_batch(true).await?;
            return Ok(Ok(charge));
        }
        let id = UpstreamId::from(due.upstream_id.as_str());
        let time = self.shared.options.lease.mul_f64(PROBE_SHARE);
        let found = tokio::time::timeout(time, lookup_client.client.has_batch_look_up(&id)).await;
        let found = found.unwrap_or_else(|_| {
            let message = format!("{}: no answer in time", self.instance.origin);
            Err(Failure::new(FailureKind::TimedOut, message))
        });
        match found {
            Ok(known) => {
                lookup_client.settle(&self.shared, charge, 1).await?;
                match known {
                    Some(has_it) => self.found_batch(has_it).await?,
                    // Inconclusive, since the post may be gone or hidden: another post will show it.
                    None => self.batch = self.batch.still(now_ms()),
                }
            }
            Err(failure) => {
                lookup_client
                    .settle_failed(&self.shared, charge, &failure)
                    .await?;
                lookup_client.failed(&self.shared, &failure).await?;
                self.batch = self.batch.still(now_ms());
                // The post may be the cause: its look-up will show that, and the next check uses another.
                if !may_blame_posts(failure.kind) {
                    tracing::info!(instance = %self.instance.origin, kind = %failure.kind, "{}", failure.message);
                    self.failures = self.failures.saturating_add(1);
                    return Ok(Err(self.pause()));
                }
            }
        }
        Ok(
            match lookup_client.take(&self.shared, claim.posts.len()).await? {
                Permit::Sent(charge) => Ok(charge),
                Permit::Until(until_ms) => Err(until_ms),
            },
        )
    }

    async fn found_batch(&mut self, has_it: bool) -> Result<(), StoreError> {
        let instance = self.instance.id;
        tracing::info!(instance = %self.instance.origin, has_it, "checked for a look-up of several posts");
        self.shared
            .store
            .write(Root::none(), move |tx| {
                set_batch_look_up(tx, instance, has_it)
            })
            .await?;
        self.batch = BatchAbility::shown(has_it, now_ms());
        Ok(())
    }

    /// Forgets a token that may have been changed, and a look-up of several posts that may have been
    /// removed.
    async fn forget_obsolete(
        &mut self,
        kind: Option<FailureKind>,
        lookup_client: &LookupClient,
    ) -> Result<(), StoreError> {
        match kind {
            Some(FailureKind::Unauthorized) => {
                self.credential_pool.forget(lookup_client.credential.id);
            }
            Some(FailureKind::NotFound) if self.batch.has_it() => {
                let instance = self.instance.id;
                self.batch = BatchAbility::default();
                self.shared
                    .store
                    .write(Root::none(), move |tx| forget_batch_look_up(tx, instance))
                    .await?;
            }
            _ => {}
        }
        Ok(())
    }

    fn after_failure(&mut self, kind: Option<FailureKind>) -> i64 {
        match kind {
            // The ledger and the quarantine know when to go on.
            Some(FailureKind::Throttled | FailureKind::Capped | FailureKind::Unauthorized) => 0,
            _ => {
                self.failures = self.failures.saturating_add(1);
                self.pause()
            }
        }
    }

    /// Begins a pause; returns its end, Unix ms.
    fn pause(&mut self) -> i64 {
        let pause_ms = backoff_ms(FAILURE_PAUSE_MS, self.failures, random());
        self.paused_until_ms = now_ms() + pause_ms.min(MAX_PAUSE_MS);
        self.paused_until_ms
    }
}

const MAX_WAIT_MS: i64 = 1_000;
const STORE_PAUSE_MS: i64 = 1_000;
const FAILURE_PAUSE_MS: i64 = 1_000;
/// The end of an outage of the upstream is noticed within this, ms.
const MAX_PAUSE_MS: i64 = 60_000;
/// The share of a claim's time for checking for a look-up of several posts.
const PROBE_SHARE: f64 = 0.2;
/// The share of a claim's time for look-ups: the rest is for saving.
const LOOK_UP_SHARE: f64 = 2.0 / 3.0;
/// The share of a claim's time in which requests with the first credential may begin: the rest is for
/// the others.
const FIRST_SHARE: f64 = LOOK_UP_SHARE * 2.0 / 3.0;

#[cfg(test)]
mod tests {
    use driftline_db::{DbError, testing::Fresh};

    use super::{super::testing::World, *};
    use driftline_runtime::testing::Warnings;

    #[tokio::test]
    async fn a_fault_of_all_workers_is_logged_once() {
        let (warnings, _guard) = Warnings::listen();
        let world = World::new().await;
        world.name_posts(&["5"]).await;
        let instance = world.instance().await;
        let workers = [(); 3].map(|()| Worker::new(&world.shared, &instance));
        let outage = StoreError::Db(DbError::ConnectionLost("away".into()));
        let of_data = StoreError::Db(DbError::Constraint("broken".into()));
        for worker in workers.iter().chain(&workers) {
            worker.log(Some(&outage));
            worker.log(Some(&of_data));
        }
        assert_eq!(warnings.times("the store fails"), 1);
        assert_eq!(warnings.times("refreshing failed"), 1);
        for worker in &workers {
            worker.log(None);
        }
        assert_eq!(warnings.times("refreshed again"), 1);
    }

    #[tokio::test]
    async fn a_claim_that_could_not_be_released_is_released_by_the_next_turn() {
        let fresh = Fresh::postgres();
        let world = World::on(fresh.target.clone()).await;
        world.credential("one").await;
        world.name_posts(&["5"]).await;
        execute(&world, "delete from pending_lookup").await;
        execute(&world, "update credential set monthly_posts = 1000000").await;
        let function = "create function broken() returns trigger language plpgsql
             as 'begin raise exception ''it is broken''; end'";
        execute(&world, function).await;
        for table in ["quota", "claim_lease"] {
            let trigger = format!(
                "create trigger broken before update or delete on {table}
                 for each row execute function broken()"
            );
            execute(&world, trigger).await;
        }
        let mut worker = Worker::new(&world.shared, &world.instance().await);
        let (_stop, mut stopped) = watch::channel(false);
        assert!(worker.turn(&mut stopped).await.is_err());
        assert!(worker.turn(&mut stopped).await.is_err(), "it cannot yet");
        for table in ["quota", "claim_lease"] {
            execute(&world, format!("drop trigger broken on {table}")).await;
        }
        let turn = worker.turn(&mut stopped).await;
        assert!(matches!(turn, Ok(Turn::Saved)), "claimed again and saved");
    }

    async fn execute(world: &World, sql: impl Into<String>) {
        let sql = sql.into();
        let done = world.shared.store.write(Root::none(), move |tx| {
            tx.execute(&sql, &[])?;
            Ok::<_, StoreError>(())
        });
        done.await.unwrap();
    }

    #[tokio::test]
    async fn a_claim_without_posts_that_fails_is_released() {
        let world = World::new().await;
        world.credential("one").await;
        world.name_posts(&["5"]).await;
        // The due post needs no look-up any more, and its charge cannot be given back.
        execute(&world, "delete from pending_lookup").await;
        execute(&world, "update credential set monthly_posts = 1000000").await;
        let trigger = "create trigger broken before update on quota \
             begin select raise(abort, 'it is broken'); end";
        execute(&world, trigger).await;
        let instance = world.instance().await;
        let mut worker = Worker::new(&world.shared, &instance);
        let (_stop, mut stopped) = watch::channel(false);
        assert!(worker.turn(&mut stopped).await.is_err());
        execute(&world, "drop trigger broken").await;
        let claim = world.claim().await;
        assert!(claim.posts.is_empty(), "{claim:?}");
    }
}
