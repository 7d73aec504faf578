//! The workers of one instance.

use std::{collections::HashMap, sync::Arc, time::Duration};

use driftline_core::{
    answer::FailureKind, post::Post, refresh::Batcher, timeline::backoff_ms,
    upstream_id::UpstreamId,
};
use driftline_store::{
    CredentialId, Root, SourceId, StoreError, clock,
    credential::{self, Credential},
    instance::{Instance, forget_batch_look_up, has_batch_look_up, set_batch_look_up},
    refresh::{Answer, Answered, Ask, Claim, Claimed, Found, Save, What, hydrate, next_due_ms},
    source,
};
use driftline_upstream::{Address, Purpose as UpstreamPurpose, Upstream};
use metrics::counter;
use tokio::{sync::watch, task::JoinHandle};

use super::{Shared, Tally, look_up, teller};
use crate::{
    clock::{chance, now_ms},
    quotas::{Permit, Purpose},
};

/// The workers of one instance.
pub(crate) struct Crew {
    workers: Vec<JoinHandle<()>>,
}

impl Crew {
    pub(crate) fn start(shared: &Arc<Shared>, instance: &Instance) -> Self {
        let workers = (0..shared.options.workers.max(1)).map(|_| {
            let worker = Worker {
                shared: Arc::clone(shared),
                instance: instance.clone(),
                shard: chance(),
                has_batch: None,
                failures: 0,
                clients: HashMap::new(),
                unusable: HashMap::new(),
            };
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
    shard: u64,
    /// Whether the upstream looks several posts up at once, once that is known.
    has_batch: Option<bool>,
    /// Failures in a row that were the upstream's.
    failures: u32,
    clients: HashMap<CredentialId, (Credential, Upstream)>,
    /// Credentials whose secret this process does not have, and until when it does not look again,
    /// Unix ms. Another process may have it, so the store is not told.
    unusable: HashMap<CredentialId, i64>,
}

/// What a turn led to.
enum Turn {
    /// A batch was saved: there may be more.
    Saved,
    /// Nothing to do before this, Unix ms.
    Until(i64),
}

impl Worker {
    async fn run(mut self) {
        let mut stop = self.shared.stopped();
        while !*stop.borrow() {
            let until_ms = match self.turn(&mut stop).await {
                Ok(Turn::Saved) => continue,
                Ok(Turn::Until(until_ms)) => until_ms,
                Err(error) => {
                    tracing::warn!(instance = %self.instance.origin, %error, "refreshing failed; trying again");
                    now_ms() + STORE_PAUSE_MS
                }
            };
            // New posts and new credentials are noticed within a second.
            let wait_ms = until_ms.saturating_sub(now_ms()).clamp(1, LONGEST_WAIT_MS);
            let wait = Duration::from_millis(wait_ms.unsigned_abs());
            tokio::select! {
                _ = stop.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn turn(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Turn, StoreError> {
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
        let (credential, client) = match self.credential().await? {
            Ok(chosen) => chosen,
            Err(until_ms) => return Ok(Turn::Until(until_ms)),
        };
        let scope = client.scope(UpstreamPurpose::LookUp);
        let put_back = |worker: &Self| {
            worker
                .shared
                .access
                .quotas
                .put_back(&credential, scope, Purpose::Refresh);
        };
        let claim = match self.claim(&client).await {
            Ok(Claimed::Batch(claim)) => claim,
            Ok(Claimed::Until(until_ms)) => {
                put_back(self);
                return Ok(Turn::Until(until_ms));
            }
            Ok(Claimed::Idle) => {
                put_back(self);
                return Ok(Turn::Until(i64::MAX));
            }
            Err(error) => {
                put_back(self);
                return Err(error);
            }
        };
        let held = claim.clone();
        let done = tokio::select! {
            done = self.refresh(claim, &credential, &client) => done,
            _ = stop.changed() => Ok(Turn::Until(0)),
        };
        // A save ended the claim; whatever else happened, its posts are not to wait for its end.
        if !matches!(done, Ok(Turn::Saved)) {
            self.shared
                .claims
                .give_back(&self.shared.store, held)
                .await?;
        }
        done
    }

    async fn refresh(
        &mut self,
        claim: Claim,
        credential: &Credential,
        client: &Upstream,
    ) -> Result<Turn, StoreError> {
        // The request was taken for a whole batch, of the size that was known then.
        let limit = client.look_up_limit(self.has_batch.unwrap_or(false));
        if !self.knows_batch(&claim, credential, client).await? {
            return Ok(Turn::Until(self.pause_ms()));
        }
        let time = self.shared.options.lease.mul_f64(2.0 / 3.0);
        let found = if claim.posts.is_empty() {
            look_up::Outcome {
                answers: Vec::new(),
                failure: None,
            }
        } else {
            let (shared, id) = (&self.shared, self.instance.id);
            let asks = |posts| shared.count(id, |tally| tally.asked(posts));
            look_up::look_up(
                client,
                &shared.access.quotas,
                credential,
                &claim,
                time,
                self.failures >= SUSPICIOUS,
                asks,
            )
            .await?
        };
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
            self.forget_what_is_over(kind, credential).await?;
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        let kind = found.failure.as_ref().map(|failure| failure.kind);
        let is_silent = found
            .answers
            .iter()
            .all(|answered| answered.answer == Answer::Nothing);
        if !is_silent {
            self.failures = 0;
            if credential.quarantine.is_some() {
                self.shared.access.quotas.restore(credential).await?;
            }
        }
        let unasked = limit.saturating_sub(claim.posts.len());
        let unasked = u32::try_from(unasked).unwrap_or(0);
        self.shared
            .access
            .quotas
            .not_read(credential, unasked)
            .await?;
        self.hydrate(&found.answers).await?;
        let save = Save {
            claim,
            answers: found.answers,
            policy: self.shared.access.policies.of(self.instance.id),
            keep_deleted: self.shared.access.keep_deleted,
            now_ms: now_ms(),
            chance: chance(),
        };
        let saved = match self.shared.claims.save(&self.shared.store, save).await {
            Ok(saved) => saved,
            Err(StoreError::LeaseLost) => {
                self.shared.count(self.instance.id, Tally::lost);
                tracing::info!(instance = %self.instance.origin, "a claim ended before its answers were saved; they are dropped");
                return Ok(Turn::Saved);
            }
            Err(error) => return Err(error),
        };
        let policy = self.shared.access.policies.of(self.instance.id);
        self.shared.count(self.instance.id, |tally| {
            for (_, outcome) in &saved.outcomes {
                tally.saved(*outcome);
            }
            for (before, after) in &saved.grown {
                tally
                    .lesson
                    .answered(&policy, &before.facts(), after.refreshed_ms);
                let total = after.counts.total() as f64;
                let lesson = &mut tally.lesson;
                lesson.grew(&policy, &before.facts(), after.refreshed_ms, total);
            }
        });
        let news: Vec<_> = saved.news.iter().map(|(post, _)| *post).collect();
        teller::tell_of(&self.shared, self.instance.id, &news).await?;
        self.forget_what_is_over(kind, credential).await?;
        if is_silent && kind.is_some() {
            return Ok(Turn::Until(self.after_failure(kind)));
        }
        Ok(Turn::Saved)
    }

    /// Stores posts that someone named and that were found; the save then finds their tickets gone.
    async fn hydrate(&self, answers: &[Answered]) -> Result<(), StoreError> {
        let mut by_source: HashMap<SourceId, Vec<(i64, Box<Post>, i64)>> = HashMap::new();
        for answered in answers {
            if let (What::Wanted { ticket, source }, Answer::Found(post)) =
                (answered.what, &answered.answer)
            {
                let found = (ticket, post.clone(), answered.asked_at_ms);
                by_source.entry(source).or_default().push(found);
            }
        }
        for (source, posts) in by_source {
            let policy = self.shared.access.policies.of(self.instance.id);
            let stored = self
                .shared
                .store
                .write(source::root(source), move |tx| {
                    let found: Vec<Found<'_>> = posts
                        .iter()
                        .map(|(ticket, post, asked_at_ms)| Found {
                            ticket: *ticket,
                            post,
                            asked_at_ms: *asked_at_ms,
                        })
                        .collect();
                    hydrate(tx, source, &found, &policy, now_ms())
                })
                .await;
            match stored {
                Ok(new) => counter!("driftline_posts_hydrated_total").increment(new),
                // Its source was removed: nobody wants it any more.
                Err(StoreError::NoSource) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn claim(&mut self, client: &Upstream) -> Result<Claimed, StoreError> {
        let instance = self.instance.id;
        if self.has_batch.is_none() {
            self.has_batch = self
                .shared
                .read(move |tx| has_batch_look_up(tx, instance))
                .await?;
        }
        let size = client.look_up_limit(self.has_batch.unwrap_or(false));
        let options = &self.shared.options;
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.shard = self.shard.wrapping_add(1);
        let policy = self.shared.access.policies.of(instance);
        let ask = Ask {
            instance,
            batcher: Batcher::new(size, ms(options.buffer_ttl)),
            shard: self.shard,
            holder: options.holder.clone(),
            lease_ms: ms(options.lease),
            now_ms: now_ms(),
            policy,
        };
        self.shared.claims.claim(&self.shared.store, ask).await
    }

    /// Finds out once per upstream whether it looks several posts up at once. `false` if that
    /// cannot be found out now.
    async fn knows_batch(
        &mut self,
        claim: &Claim,
        credential: &Credential,
        client: &Upstream,
    ) -> Result<bool, StoreError> {
        let (None, Some(due)) = (self.has_batch, claim.posts.first()) else {
            return Ok(true);
        };
        let scope = client.scope(UpstreamPurpose::LookUp);
        let permit = self
            .shared
            .access
            .quotas
            .take(credential, scope, Purpose::Refresh, 1)
            .await?;
        if permit != Permit::Sent {
            return Ok(false);
        }
        let id = UpstreamId::from(due.upstream_id.as_str());
        match client.has_batch_look_up(&id).await {
            // It showed nothing of a post that may be gone: the next one will tell.
            Ok(None) => Ok(true),
            Ok(Some(has_it)) => {
                let instance = self.instance.id;
                tracing::info!(instance = %self.instance.origin, has_it, "looked for its look-up of several posts");
                self.shared
                    .store
                    .write(Root::none(), move |tx| {
                        set_batch_look_up(tx, instance, has_it)
                    })
                    .await?;
                self.has_batch = Some(has_it);
                Ok(true)
            }
            Err(failure) => {
                self.shared
                    .access
                    .quotas
                    .failed(credential, scope, &failure)
                    .await?;
                tracing::info!(instance = %self.instance.origin, kind = %failure.kind, "{}", failure.message);
                self.failures = self.failures.saturating_add(1);
                Ok(false)
            }
        }
    }

    /// A credential that may be used now, with its client and one request taken from its quota;
    /// else when to look again, Unix ms.
    async fn credential(&mut self) -> Result<Result<(Credential, Upstream), i64>, StoreError> {
        let instance = self.instance.id;
        let mut all = self
            .shared
            .read(move |tx| credential::of_instance(tx, instance))
            .await?;
        let named = &self.shared.options.credentials;
        if !named.is_empty() {
            all.retain(|credential| named.contains(&credential.name));
        } else if all.is_empty() {
            all = vec![self.without_token().await?];
        }
        if all.is_empty() {
            return Ok(Err(i64::MAX));
        }
        let now = now_ms();
        let mut until_ms = i64::MAX;
        let first = (chance() % all.len() as u64) as usize;
        all.rotate_left(first);
        // What has a token sees more and may ask more often.
        all.sort_by_key(|credential| credential.place.is_none());
        for credential in all {
            if let Some(rest) = credential.quarantine.as_ref().filter(|q| q.until_ms > now) {
                until_ms = until_ms.min(rest.until_ms);
                continue;
            }
            if let Some(look_ms) = self.unusable.get(&credential.id).filter(|ms| **ms > now) {
                until_ms = until_ms.min(*look_ms);
                continue;
            }
            let Some(client) = self.client(&credential) else {
                continue;
            };
            let scope = client.scope(UpstreamPurpose::LookUp);
            let posts = client.look_up_limit(self.has_batch.unwrap_or(false)) as u32;
            match self
                .shared
                .access
                .quotas
                .take(&credential, scope, Purpose::Refresh, posts)
                .await?
            {
                Permit::Sent => return Ok(Ok((credential, client))),
                Permit::Until(free_ms) => until_ms = until_ms.min(free_ms),
            }
        }
        Ok(Err(until_ms))
    }

    async fn without_token(&self) -> Result<Credential, StoreError> {
        let instance = self.instance.id;
        self.shared
            .store
            .write(clock::root(), move |tx| {
                credential::of_place(tx, instance, None, ANONYMOUS, now_ms())
            })
            .await
    }

    fn client(&mut self, credential: &Credential) -> Option<Upstream> {
        if let Some((known, client)) = self.clients.get(&credential.id)
            && known.place == credential.place
        {
            return Some(client.clone());
        }
        let made = self.make_client(credential);
        match made {
            Ok(client) => {
                let kept = (credential.clone(), client.clone());
                self.clients.insert(credential.id, kept);
                Some(client)
            }
            Err(reason) => {
                tracing::warn!(credential = %credential.name, "this process cannot use it: {reason}");
                let until_ms = now_ms().saturating_add(UNREADABLE_REST_MS);
                self.unusable.insert(credential.id, until_ms);
                None
            }
        }
    }

    fn make_client(&self, credential: &Credential) -> Result<Upstream, String> {
        let address = Address::parse(&self.instance.origin).map_err(|error| error.to_string())?;
        let secret = self
            .shared
            .access
            .secret(credential.place.as_ref(), &self.instance.origin)
            .map_err(|error| error.to_string())?;
        Upstream::new(
            self.instance.api,
            self.shared.access.http.clone(),
            address,
            secret,
        )
        .map_err(|error| error.to_string())
    }

    /// A token may have been changed where it lies, and a server's look-up of several posts may be
    /// gone: neither is relied on any more.
    async fn forget_what_is_over(
        &mut self,
        kind: Option<FailureKind>,
        credential: &Credential,
    ) -> Result<(), StoreError> {
        match kind {
            Some(FailureKind::Unauthorized) => {
                self.clients.remove(&credential.id);
            }
            Some(FailureKind::NotFound) if self.has_batch == Some(true) => {
                let instance = self.instance.id;
                self.has_batch = None;
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
            Some(FailureKind::Throttled | FailureKind::Unauthorized) => 0,
            _ => {
                self.failures = self.failures.saturating_add(1);
                self.pause_ms()
            }
        }
    }

    fn pause_ms(&self) -> i64 {
        now_ms() + backoff_ms(FAILURE_PAUSE_MS, self.failures, chance())
    }
}

/// The name of the credential that is none.
pub(crate) const ANONYMOUS: &str = "anonymous";
/// Failures in a row after which the upstream is thought to be down.
const SUSPICIOUS: u32 = 2;
const LONGEST_WAIT_MS: i64 = 1_000;
const STORE_PAUSE_MS: i64 = 1_000;
const FAILURE_PAUSE_MS: i64 = 1_000;
const UNREADABLE_REST_MS: i64 = 60_000;
