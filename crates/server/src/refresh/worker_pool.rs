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
use driftline_store::{
    Root, StoreError,
    instance::{Instance, forget_batch_look_up, has_batch_look_up, set_batch_look_up},
    refresh::{Ask, Claim, Claimed, SHARDS, next_due_ms},
};
use driftline_upstream::Upstream;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Shared,
    batch_ability::BatchAbility,
    cross_check,
    keyring::Keyring,
    look_up::{self, Deadlines},
    reader::Reader,
    saving::save,
};
use crate::{
    clock::{now_ms, random},
    fault_log::Weight,
    quotas::{Charge, Permit},
    span::show_ms,
};

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

    /// Whether a worker has ended, which none does by itself.
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
    /// Its name on its claims, no other worker's.
    holder: String,
    /// A claim may be held in its name that it does not know of or could not give back.
    may_hold: bool,
    shard: u64,
    batch: BatchAbility,
    /// Failures in a row that were the upstream's.
    failures: u32,
    /// The same of each shard: what heads one may look like an upstream that is down while others
    /// are answered.
    suspicion: [u32; SHARDS as usize],
    /// Until when it asks nothing after a failure, Unix ms.
    paused_until_ms: i64,
    keyring: Keyring,
}

/// What a turn led to.
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
            suspicion: [0; SHARDS as usize],
            paused_until_ms: 0,
            keyring: Keyring::new(instance),
        }
    }

    async fn run(mut self) {
        let mut stop = self.shared.stopped();
        while !*stop.borrow() {
            let turn = self.turn(&mut stop).await;
            self.tell(turn.as_ref().err());
            let until_ms = match turn {
                Ok(Turn::Saved) => continue,
                Ok(Turn::Until(until_ms)) => until_ms,
                Err(_) => now_ms() + STORE_PAUSE_MS,
            };
            // New posts and new credentials are noticed within a second, but in a pause.
            let now = now_ms();
            let max_ms = MAX_WAIT_MS.max(self.paused_until_ms.saturating_sub(now));
            let wait_ms = until_ms.saturating_sub(now).clamp(1, max_ms);
            let wait = Duration::from_millis(wait_ms.unsigned_abs());
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        if let Err(error) = self.give_back_what_is_left().await {
            tracing::info!(instance = %self.instance.origin, %error, "a claim was not given back; it ends by itself");
        }
    }

    /// Tells what comes of its turns: what the whole store does is told once for all.
    fn tell(&self, error: Option<&StoreError>) {
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

    /// Gives back what was claimed without a word, or could not be given back: between two turns a
    /// worker holds nothing.
    async fn give_back_what_is_left(&mut self) -> Result<(), StoreError> {
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
        self.give_back_what_is_left().await?;
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
        // What is chosen is charged for a batch of the size that is claimed then.
        self.recall_batch().await?;
        let has_batch = self.batch.has_it();
        let (reader, charge) = match self.keyring.choose(&self.shared, has_batch).await? {
            Ok(chosen) => chosen,
            Err(until_ms) => return Ok(Turn::Until(until_ms)),
        };
        let claim = match self.claim(&reader.client).await {
            Ok(Claimed::Batch(claim)) => claim,
            Ok(Claimed::Until(until_ms)) => {
                reader.put_back(&self.shared, charge).await?;
                return Ok(Turn::Until(until_ms));
            }
            Ok(Claimed::Idle) => {
                reader.put_back(&self.shared, charge).await?;
                return Ok(Turn::Until(i64::MAX));
            }
            Err(error) => {
                self.may_hold = true;
                reader.put_back(&self.shared, charge).await?;
                return Err(error);
            }
        };
        let held = claim.clone();
        let done = if claim.posts.is_empty() {
            self.schedule_anew(claim, &reader, charge).await
        } else {
            tokio::select! {
                done = self.refresh(claim, &reader, charge) => done,
                _ = stop.changed() => Ok(Turn::Until(0)),
            }
        };
        // A save ended the claim; whatever else happened, its posts are not to wait for its end.
        if !matches!(done, Ok(Turn::Saved)) {
            let (claims, store) = (&self.shared.claims, &self.shared.store);
            let given = claims.give_back(store, held).await;
            self.may_hold = given.is_err();
            given?;
        }
        done
    }

    /// Saves a claim without posts: there is nothing to ask.
    async fn schedule_anew(
        &self,
        claim: Claim,
        reader: &Reader,
        charge: Charge,
    ) -> Result<Turn, StoreError> {
        reader.put_back(&self.shared, charge).await?;
        save(&self.shared, &self.instance, claim, Vec::new()).await?;
        Ok(Turn::Saved)
    }

    async fn refresh(
        &mut self,
        claim: Claim,
        reader: &Reader,
        charge: Charge,
    ) -> Result<Turn, StoreError> {
        let credential = &reader.credential;
        let charge = match self.knows_batch(&claim, reader, charge).await? {
            Ok(charge) => charge,
            Err(until_ms) => return Ok(Turn::Until(until_ms)),
        };
        let found = self.look_up(&claim, reader, charge).await?;
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
            self.forget_what_is_over(kind, reader).await?;
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        let kind = found.failure.as_ref().map(|failure| failure.kind);
        let is_silent = !found
            .answers
            .iter()
            .any(|answered| answered.answer.is_usable());
        if !is_silent {
            self.failures = 0;
            *self.suspicion() = 0;
            if credential.quarantine.is_some() {
                self.shared.access.quotas.restore(credential).await?;
            }
        }
        save(&self.shared, &self.instance, claim, found.answers).await?;
        self.forget_what_is_over(kind, reader).await?;
        if is_silent && kind.is_some() {
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        Ok(Turn::Saved)
    }

    /// Looks a claim's posts up: with one credential, and with others what that one says is not to
    /// be had.
    async fn look_up(
        &mut self,
        claim: &Claim,
        reader: &Reader,
        charge: Charge,
    ) -> Result<look_up::Outcome, StoreError> {
        let silent = self.failures.max(*self.suspicion());
        let (shared, now) = (&self.shared, now_ms());
        let time_ms = |share: f64| {
            let time = shared.options.lease.mul_f64(share);
            i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
        };
        let mut hours = Deadlines {
            last_ms: now.saturating_add(time_ms(FIRST_SHARE)),
            over_ms: now.saturating_add(time_ms(LOOK_UP_SHARE)),
        };
        let posts: Vec<_> = claim.posts.iter().collect();
        let found = look_up::look_up(shared, reader, charge, &posts, hours, silent).await?;
        hours.last_ms = hours.over_ms;
        let keyring = &mut self.keyring;
        let answers =
            cross_check::confirmed(shared, keyring, reader, claim, found.answers, hours).await?;
        Ok(look_up::Outcome { answers, ..found })
    }

    /// Takes up what others found out of the upstream's look-up of several posts.
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
        let ask = Ask {
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

    /// Finds out whether the upstream looks several posts up at once, where that is not known or
    /// was found long ago; the request that was taken is used for that, and another one taken for
    /// the look-up. Returns what the look-up's is charged, or until when there is none, Unix ms.
    async fn knows_batch(
        &mut self,
        claim: &Claim,
        reader: &Reader,
        charge: Charge,
    ) -> Result<Result<Charge, i64>, StoreError> {
        let due = claim.posts.first();
        let Some(due) = due.filter(|_| self.batch.is_to_be_asked(now_ms())) else {
            return Ok(Ok(charge));
        };
        if self.instance.api != Api::Mastodon {
            // The other APIs always have it, and nothing is asked.
            self.found_batch(true).await?;
            return Ok(Ok(charge));
        }
        let id = UpstreamId::from(due.upstream_id.as_str());
        let time = self.shared.options.lease.mul_f64(PROBE_SHARE);
        let found = tokio::time::timeout(time, reader.client.has_batch_look_up(&id)).await;
        let found = found.unwrap_or_else(|_| {
            let message = format!("{}: no answer in time", self.instance.origin);
            Err(Failure::new(FailureKind::TimedOut, message))
        });
        match found {
            Ok(known) => {
                reader.settle(&self.shared, charge, 1).await?;
                match known {
                    Some(has_it) => self.found_batch(has_it).await?,
                    // It showed nothing of a post that may be gone or hidden: another will tell.
                    None => self.batch = self.batch.still(now_ms()),
                }
            }
            Err(failure) => {
                reader.settle_failed(&self.shared, charge, &failure).await?;
                reader.failed(&self.shared, &failure).await?;
                self.batch = self.batch.still(now_ms());
                // It may be that post's fault: looking it up will tell, and another be asked by.
                if !may_blame_posts(failure.kind) {
                    tracing::info!(instance = %self.instance.origin, kind = %failure.kind, "{}", failure.message);
                    self.failures = self.failures.saturating_add(1);
                    return Ok(Err(self.pause()));
                }
            }
        }
        Ok(match reader.take(&self.shared, claim.posts.len()).await? {
            Permit::Sent(charge) => Ok(charge),
            Permit::Until(until_ms) => Err(until_ms),
        })
    }

    async fn found_batch(&mut self, has_it: bool) -> Result<(), StoreError> {
        let instance = self.instance.id;
        tracing::info!(instance = %self.instance.origin, has_it, "looked for its look-up of several posts");
        self.shared
            .store
            .write(Root::none(), move |tx| {
                set_batch_look_up(tx, instance, has_it)
            })
            .await?;
        self.batch = BatchAbility::shown(has_it, now_ms());
        Ok(())
    }

    /// A token may have been changed where it lies, and a server's look-up of several posts may be
    /// gone: neither is relied on any more.
    async fn forget_what_is_over(
        &mut self,
        kind: Option<FailureKind>,
        reader: &Reader,
    ) -> Result<(), StoreError> {
        match kind {
            Some(FailureKind::Unauthorized) => self.keyring.forget(reader.credential.id),
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
                let suspicion = self.suspicion();
                *suspicion = suspicion.saturating_add(1);
                self.pause()
            }
        }
    }

    /// Of the shard that was claimed from last.
    fn suspicion(&mut self) -> &mut u32 {
        &mut self.suspicion[(self.shard % SHARDS as u64) as usize]
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
/// An upstream that is back is noticed within this, ms.
const MAX_PAUSE_MS: i64 = 60_000;
/// How much of a claim's time the search for a look-up of several posts has.
const PROBE_SHARE: f64 = 0.2;
/// How much of a claim's time a look-up has: the rest is for saving.
const LOOK_UP_SHARE: f64 = 2.0 / 3.0;
/// How much of it requests with the first credential may begin in: the rest is for others.
const FIRST_SHARE: f64 = LOOK_UP_SHARE * 2.0 / 3.0;

#[cfg(test)]
mod tests {
    use driftline_db::{DbError, testing::Fresh};

    use super::{super::testing::World, *};
    use crate::warnings::Warnings;

    #[tokio::test]
    async fn what_all_workers_meet_again_and_again_is_told_once() {
        let (told, _listening) = Warnings::listen();
        let world = World::new().await;
        world.name_posts(&["5"]).await;
        let instance = world.instance().await;
        let workers = [(); 3].map(|()| Worker::new(&world.shared, &instance));
        let outage = StoreError::Db(DbError::ConnectionLost("away".into()));
        let of_data = StoreError::Db(DbError::Constraint("broken".into()));
        for worker in workers.iter().chain(&workers) {
            worker.tell(Some(&outage));
            worker.tell(Some(&of_data));
        }
        assert_eq!(told.times("the store fails"), 1);
        assert_eq!(told.times("refreshing failed"), 1);
        for worker in &workers {
            worker.tell(None);
        }
        assert_eq!(told.times("refreshed again"), 1);
    }

    #[tokio::test]
    async fn a_claim_that_could_not_be_given_back_is_given_back_by_the_next_turn() {
        let fresh = Fresh::postgres();
        let world = World::on(fresh.target.clone()).await;
        world.credential("one").await;
        world.name_posts(&["5"]).await;
        execute(&world, "delete from pending").await;
        execute(&world, "update credential set monthly_posts = 1000000").await;
        let function = "create function broken() returns trigger language plpgsql
             as 'begin raise exception ''it is broken''; end'";
        execute(&world, function).await;
        for table in ["quota", "lease"] {
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
        for table in ["quota", "lease"] {
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
    async fn a_claim_without_posts_that_comes_to_nothing_is_given_back() {
        let world = World::new().await;
        world.credential("one").await;
        world.name_posts(&["5"]).await;
        // What is due needs no look-up any more, and what was charged for one cannot be given back.
        execute(&world, "delete from pending").await;
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
