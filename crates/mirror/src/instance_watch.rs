//! Asks the instances that sources are read from what they are, and keeps that fresh.
//!
//! Of several processes the one asks that moves the next time on ([`instance_info::claim`]). Nothing is sent with a
//! token: what is stored is what a server says to anybody.

use std::collections::HashMap;

use driftline_core::{answer::Failure, api::Api, quota::QuotaPurpose, social::InstanceInfo};
use driftline_runtime::{FaultLogs, Weight, now_ms, random, steady_ms};
use driftline_store::{
    InstanceId, Store, StoreError,
    instance::{self, Instance},
    instance_info::{self, MAX_WAIT_MS, StoredInstanceInfo},
};
use driftline_upstream::{ClientPurpose, InstanceInquiry};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet, time::Duration};

use crate::{
    Pollers, anonymous_access::AnonymousAccess, quotas::Permit, upstream_access::UpstreamAccess,
};

/// Keeps what is known of the instances whose sources a process reads.
pub struct InstanceWatch {
    stop: watch::Sender<bool>,
    watching: Mutex<JoinSet<()>>,
}

impl InstanceWatch {
    /// Begins to ask the instances whose sources these pollers read: each as soon as one of its sources is read,
    /// and about once a day.
    pub fn start(store: Store, access: UpstreamAccess, pollers: Pollers) -> Self {
        let stop = watch::channel(false).0;
        let mut stopped = stop.subscribe();
        let mut watching = JoinSet::new();
        watching.spawn(async move {
            let watcher = Watcher {
                store,
                access,
                next_ms: Mutex::default(),
                faults: FaultLogs::default(),
            };
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => {}
                () = watcher.run(&pollers) => {}
            }
        });
        Self {
            stop,
            watching: Mutex::new(watching),
        }
    }

    /// Ends it. A request in flight is dropped.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut watching = std::mem::take(&mut *self.watching.lock());
        while watching.join_next().await.is_some() {}
    }
}

struct Watcher {
    store: Store,
    access: UpstreamAccess,
    /// Before which an instance need not be looked at, ms by the process's monotonic clock.
    next_ms: Mutex<HashMap<InstanceId, i64>>,
    faults: FaultLogs<InstanceId>,
}

/// How asking an instance ended.
enum Outcome {
    /// It said this.
    Said(Box<InstanceInfo>),
    /// It says nothing to those without a token.
    Silent,
    /// It did not answer.
    Failed(Failure),
    /// No request may be sent before, Unix ms.
    Until(i64),
    /// It cannot be asked: it was forgotten, or has no client.
    Unable,
}

impl Watcher {
    async fn run(&self, pollers: &Pollers) {
        loop {
            let mut read: HashMap<InstanceId, Instance> = HashMap::new();
            for progress in pollers.progress().await {
                let instance = &progress.source.instance;
                if instance.api == Api::Mastodon {
                    read.entry(instance.id).or_insert_with(|| instance.clone());
                }
            }
            let now = steady_ms();
            {
                let mut next_ms = self.next_ms.lock();
                next_ms.retain(|id, _| read.contains_key(id));
                read.retain(|id, _| next_ms.get(id).is_none_or(|next_ms| *next_ms <= now));
            }
            stream::iter(read.into_values())
                .for_each_concurrent(MAX_INQUIRIES, |instance| self.look_at(instance))
                .await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look_at(&self, instance: Instance) {
        let wait_ms = match self.ask_if_due(&instance).await {
            Ok(next_ms) => next_ms.saturating_sub(now_ms()),
            Err(error) => {
                // Others tell of a store that is out.
                tracing::debug!(%error, "an instance was not asked what it is: the store failed");
                STORE_RETRY_MS
            }
        };
        let next_ms = steady_ms().saturating_add(wait_ms.min(MAX_WAIT_MS));
        self.next_ms.lock().insert(instance.id, next_ms);
    }

    /// Asks an instance if it is time; returns when to look at it again, Unix ms.
    async fn ask_if_due(&self, instance: &Instance) -> Result<i64, StoreError> {
        let (id, now) = (instance.id, now_ms());
        if self.access.store_fault.lasts().await || self.access.store_disk.low().is_some() {
            return Ok(now + STORE_RETRY_MS);
        }
        let asks_at_ms = self
            .store
            .read(move |tx| instance_info::asks_at_ms(tx, id))
            .await?;
        // A clock that was ahead set what is further away.
        let is_later = |at_ms: &i64| (now + 1..=now + MAX_WAIT_MS).contains(at_ms);
        if let Some(asks_at_ms) = asks_at_ms.filter(is_later) {
            return Ok(asks_at_ms);
        }
        let claimed = self.store.write(instance::root(id), move |tx| {
            instance_info::claim(tx, id, now + CLAIM_MS, now)
        });
        if !claimed.await? {
            return Ok(now + CLAIM_MS);
        }
        let outcome = self.ask(id).await?;
        let now = now_ms();
        let next_ms = match &outcome {
            Outcome::Said(_) => now + with_jitter(FRESH_MS),
            Outcome::Silent | Outcome::Unable => now + with_jitter(SILENT_MS),
            Outcome::Failed(_) => now + with_jitter(FAILED_MS),
            Outcome::Until(until_ms) => (*until_ms).clamp(now + STORE_RETRY_MS, now + FAILED_MS),
        };
        match &outcome {
            Outcome::Said(_) | Outcome::Silent => self.faults.succeeded(&id, now),
            Outcome::Failed(failure) => {
                if self.faults.failed(id, Weight::Lasting, now) {
                    tracing::info!(
                        instance = %instance.origin,
                        kind = %failure.kind,
                        "the instance does not say what it is; it is asked again later, and read all the same"
                    );
                }
                None
            }
            Outcome::Until(_) | Outcome::Unable => None,
        };
        let said = match outcome {
            Outcome::Said(info) => Some(StoredInstanceInfo {
                info: *info,
                fetched_at_ms: now,
            }),
            _ => None,
        };
        let store = self.store.write(instance::root(id), move |tx| {
            instance_info::store(tx, id, said.as_ref(), next_ms)
        });
        store.await?;
        Ok(next_ms)
    }

    async fn ask(&self, id: InstanceId) -> Result<Outcome, StoreError> {
        let anonymous = self.store.read(move |tx| AnonymousAccess::load(tx, id));
        let Some(anonymous) = anonymous.await? else {
            return Ok(Outcome::Unable);
        };
        let client = match self.access.client(anonymous.server(), None) {
            Ok(client) => client,
            Err(error) => {
                tracing::debug!(%error, "an instance is not asked what it is: it has no client");
                return Ok(Outcome::Unable);
            }
        };
        let credential = match anonymous.credential(&self.store).await {
            Err(StoreError::NoSource) => return Ok(Outcome::Unable),
            credential => credential?,
        };
        let scope = client.scope(ClientPurpose::LookUp);
        let quotas = &self.access.quotas;
        let quota = quotas.of(&credential, scope, QuotaPurpose::Refresh);
        let mut inquiry = InstanceInquiry::default();
        while !inquiry.is_done() {
            let charge = match quota.take(1).await? {
                Permit::Sent(charge) => charge,
                Permit::Until(until_ms) => return Ok(Outcome::Until(until_ms)),
            };
            match client.inquire(&mut inquiry).await {
                Ok(headers) => quota.answered(charge, 0, &headers).await?,
                Err(failure) => {
                    quota.failed(charge, &failure).await?;
                    return Ok(Outcome::Failed(failure));
                }
            }
        }
        Ok(match inquiry.into_info() {
            Some(info) => Outcome::Said(Box::new(info)),
            None => Outcome::Silent,
        })
    }
}

/// A time that many processes and instances do not share: within a tenth of it.
fn with_jitter(ms: i64) -> i64 {
    let tenth = ms / 10;
    ms - tenth + (random() % (2 * tenth).unsigned_abs().max(1)).cast_signed()
}

/// How often to look whether an instance is new.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Instances that are asked at a time.
const MAX_INQUIRIES: usize = 4;
/// Within which whoever asks an instance has ended, or died.
const CLAIM_MS: i64 = 600_000;
const FRESH_MS: i64 = 86_400_000;
/// Of a server that says nothing.
const SILENT_MS: i64 = 6 * 3_600_000;
const FAILED_MS: i64 = 3_600_000;
const STORE_RETRY_MS: i64 = 60_000;
