//! Keeps stored posts fresh: workers claim the posts that are due, look them up and save the answers.
//!
//! Every process that shares a store runs its workers, which look at its part of the shards
//! ([`crate::Sharing`]); claims keep workers apart. During a request a
//! worker holds a claim, and no transaction.

mod batch_ability;
mod claim_parts;
mod configured_credentials;
mod credential_pool;
mod cross_check;
mod due_watch;
mod gone_check;
mod look_up;
mod lookup_client;
mod options;
mod outbox_relay;
mod refresh_capacity;
mod refresh_stats;
mod refusals;
mod saving;
#[cfg(test)]
pub(crate) mod testing;
mod worker_pool;

use std::{collections::HashMap, sync::Arc, time::Instant};

use driftline_core::refresh::RefreshObservation;
use driftline_runtime::{
    FaultLog, FaultLogs, Weight,
    metrics::{
        REFRESH_CAUGHT_UP, REFRESH_OLDEST_OVERDUE, REFRESH_OVERDUE_POSTS, REFRESH_SCHEDULED_POSTS,
        REFRESH_STALENESS,
    },
    now_ms, show_ms,
};
use driftline_store::{
    CredentialId, InstanceId, Store, StoreError,
    instance::Instance,
    refresh::{Shards, bands, next_due_ms, overdue},
    source,
};
use due_watch::DueWatch;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};

pub use options::RefreshOptions;
pub use outbox_relay::OutboxRelay;
pub use refresh_stats::RefreshStats;

pub use configured_credentials::ConfiguredCredentials;
pub(crate) use credential_pool::ANONYMOUS;

use crate::{sharing::Sharing, upstream_access::UpstreamAccess};
use configured_credentials::UnknownNames;
use refusals::Refusals;
use worker_pool::WorkerPool;

/// The workers of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Refreshers {
    shared: Arc<Shared>,
    keeper: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// State that all workers of a process share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) access: UpstreamAccess,
    pub(crate) options: RefreshOptions,
    refusals: Refusals,
    /// Faults of an instance's workers, apart from outages of the whole store.
    faults: FaultLogs<InstanceId>,
    /// Credentials that this process cannot read.
    unusable: FaultLogs<CredentialId>,
    refresh_stats: parking_lot::Mutex<HashMap<InstanceId, RefreshStats>>,
    due_watch: DueWatch,
    stop: watch::Sender<bool>,
}

impl Refreshers {
    /// Begins to refresh the due posts of every instance of the store.
    pub fn start(store: Store, access: UpstreamAccess, options: RefreshOptions) -> Self {
        let shared = Arc::new(Shared::new(store, access, options));
        let keeper = tokio::spawn(keep(Arc::clone(&shared)));
        Self {
            shared,
            keeper: Arc::new(Mutex::new(Some(keeper))),
        }
    }

    /// The work of this process's workers for an instance since they began.
    pub fn refresh_stats(&self, instance: InstanceId) -> RefreshStats {
        self.shared.count(instance, |stats| stats.clone())
    }

    /// Ends all workers; they release their claims.
    pub async fn stop(&self) {
        self.shared.stop.send_replace(true);
        if let Some(keeper) = self.keeper.lock().await.take() {
            let _ = keeper.await;
        }
    }
}

impl Shared {
    fn new(store: Store, access: UpstreamAccess, options: RefreshOptions) -> Self {
        let (stop, _) = watch::channel(false);
        Self {
            store,
            access,
            options,
            refusals: Refusals::default(),
            faults: FaultLogs::default(),
            unusable: FaultLogs::default(),
            refresh_stats: parking_lot::Mutex::default(),
            due_watch: DueWatch::default(),
            stop,
        }
    }

    /// The shards of an instance that this process's workers look at.
    fn shards(&self, instance: InstanceId) -> Shards {
        let sharing = self.options.sharing.as_ref();
        sharing.map_or(Shards::ALL, |sharing| sharing.shards(instance))
    }

    /// Waits until these are no more the shards that this process's workers look at.
    async fn shards_change(&self, instance: InstanceId, from: Shards) {
        match &self.options.sharing {
            None => std::future::pending().await,
            Some(sharing) => sharing.shards_change(instance, from).await,
        }
    }

    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    pub(crate) fn count<T>(
        &self,
        instance: InstanceId,
        count: impl FnOnce(&mut RefreshStats) -> T,
    ) -> T {
        let mut all = self.refresh_stats.lock();
        let refresh_stats = all.entry(instance).or_default();
        let before = refresh_stats.unconfirmed();
        let counted = count(refresh_stats);
        if refresh_stats.unconfirmed() > before {
            self.access.cache_invalidations.raise(instance);
        }
        counted
    }
}

/// Keeps a worker pool for every instance.
async fn keep(shared: Arc<Shared>) {
    let mut stop = shared.stopped();
    let mut pools: HashMap<InstanceId, WorkerPool> = HashMap::new();
    let mut unknown_names = UnknownNames::default();
    let mut fault = FaultLog::default();
    let mut looking = tokio::spawn(due_watch::look(Arc::clone(&shared)));
    while !*stop.borrow() {
        if looking.is_finished() && !*stop.borrow() {
            tracing::error!("the look for due posts panicked; it is started again");
            looking = tokio::spawn(due_watch::look(Arc::clone(&shared)));
        }
        if !shared.access.store_fault.lasts().await {
            match scan(&shared, &mut pools, &mut unknown_names).await {
                Ok(()) => {
                    if let Some(failed_ms) = fault.succeeded(now_ms()) {
                        tracing::warn!(
                            "refresh schedules are scanned again, after {}",
                            show_ms(failed_ms)
                        );
                    }
                }
                Err(error) if shared.access.store_fault.takes(&error) => {}
                Err(error) => {
                    if fault.failed(Weight::Lasting, now_ms()) {
                        tracing::warn!(%error, "a refresh schedule could not be scanned; trying again");
                    }
                }
            }
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(shared.options.scan) => {}
        }
    }
    for (_, pool) in pools {
        pool.end().await;
    }
    let _ = looking.await;
}

/// Scans each instance, whatever is wrong with the others. Returns the first error.
async fn scan(
    shared: &Arc<Shared>,
    pools: &mut HashMap<InstanceId, WorkerPool>,
    unknown_names: &mut UnknownNames,
) -> Result<(), StoreError> {
    let mut outcome = unknown_names.warn(shared).await;
    let known = shared.options.sharing.as_ref();
    let instances = match known.and_then(Sharing::instances) {
        Some(instances) => instances,
        None => shared.store.read(source::instances).await?,
    };
    let only = shared.options.only;
    let instances = instances.into_iter();
    let instances: Vec<_> = instances
        .filter(|instance| only.is_none_or(|only| instance.id == only))
        .collect();
    for id in pools.keys() {
        if !instances.iter().any(|instance| instance.id == *id) {
            let origin = shared.count(*id, |stats| stats.origin.clone());
            REFRESH_CAUGHT_UP.with([origin]).set(f64::NAN);
        }
    }
    let left = shared
        .access
        .outbox_relay
        .with_what_is_left(now_ms())
        .await?;
    let is_over = *shared.stop.borrow();
    for (id, _) in pools.extract_if(|_, pool| pool.is_broken() && !is_over) {
        tracing::error!(instance = %id, "a refresh worker panicked; the instance's workers are started again");
    }
    for instance in &instances {
        shared.count(instance.id, |refresh_stats| {
            refresh_stats.origin.clone_from(&instance.origin);
        });
        pools
            .entry(instance.id)
            .or_insert_with(|| WorkerPool::start(shared, instance));
    }
    outcome = outcome.and(count_backlogs(shared, &instances).await);
    for instance in &instances {
        let has_left = left.contains(&instance.id);
        outcome = outcome.and(scan_instance(shared, instance, has_left).await);
    }
    outcome
}

/// Exports how far behind an instance is, and relays what a dead worker left in the outbox.
async fn scan_instance(
    shared: &Arc<Shared>,
    instance: &Instance,
    has_left: bool,
) -> Result<(), StoreError> {
    let (id, now) = (instance.id, now_ms());
    credential_pool::retry_refused(shared, instance).await?;
    // What is nobody's every process reports.
    let sharing = shared.options.sharing.as_ref();
    let is_unrefreshed = sharing.is_some_and(|sharing| sharing.is_unrefreshed(id));
    let shards = match is_unrefreshed {
        true => Shards::ALL,
        false => shared.shards(id),
    };
    let is_asleep = shared.due_watch.is_asleep(id) && !is_unrefreshed;
    let first_due_ms = match is_asleep || shards.is_empty() {
        true => None,
        false => {
            let next = shared
                .store
                .read(move |tx| next_due_ms(tx, id, shards, now));
            next.await?
        }
    };
    let caught_up_ms = first_due_ms.map_or(now, |due_ms| due_ms.min(now));
    let oldest_ms = now.saturating_sub(caught_up_ms);
    REFRESH_CAUGHT_UP
        .with([instance.origin.clone()])
        .set(caught_up_ms as f64 / 1000.0);
    let oldest = REFRESH_OLDEST_OVERDUE.with([instance.origin.clone()]);
    oldest.set(oldest_ms as f64 / 1000.0);
    share_learned(shared, instance).await?;
    if has_left {
        let relay = &shared.access.outbox_relay;
        relay.relay_what_is_left(id, now).await?;
    }
    Ok(())
}

/// Counts the whole schedules of the instances whose turn it is, all in one transaction, and exports
/// what they show.
async fn count_backlogs(shared: &Arc<Shared>, instances: &[Instance]) -> Result<(), StoreError> {
    let (now, begun) = (now_ms(), Instant::now());
    let is_due = |instance: &&Instance| shared.count(instance.id, |stats| stats.is_count_due(now));
    let instances: Vec<&Instance> = instances.iter().filter(is_due).collect();
    if instances.is_empty() {
        return Ok(());
    }
    let ages = shared.access.policies.ages().clone();
    let ids: Vec<InstanceId> = instances.iter().map(|instance| instance.id).collect();
    let read = shared.store.read({
        let ages = ages.clone();
        move |tx| Ok::<_, StoreError>((overdue(tx, &ids, now)?, bands(tx, &ids, &ages, now)?))
    });
    let (behind, band_states) = read.await?;
    for ((instance, behind), band_states) in instances.iter().zip(behind).zip(band_states) {
        let origin = || instance.origin.clone();
        shared.count(instance.id, |stats| {
            stats.counted(now, begun.elapsed(), behind.overdue);
        });
        let (overdue, scheduled) = (behind.overdue as f64, behind.scheduled as f64);
        REFRESH_OVERDUE_POSTS.with([origin()]).set(overdue);
        REFRESH_SCHEDULED_POSTS.with([origin()]).set(scheduled);
        for (band, state) in ages.bands().iter().zip(band_states) {
            let younger_than = format!("{}s", band.below_ms / 1000);
            REFRESH_STALENESS
                .with([origin(), younger_than])
                .set(state.mean_staleness_ms as f64 / 1000.0);
        }
    }
    Ok(())
}

/// Shares this process's observations and adopts the learned state of all processes, once in a few
/// minutes, together with what was overdue when the schedule was last counted.
async fn share_learned(shared: &Arc<Shared>, instance: &Instance) -> Result<(), StoreError> {
    let (id, now) = (instance.id, now_ms());
    let observation = shared.count(id, |stats| stats.observation_to_share(now));
    let Some(observation) = observation else {
        return Ok(());
    };
    let shared_now = share_observation(shared, instance, &observation, now).await;
    if shared_now.is_err() {
        shared.count(id, |refresh_stats| {
            refresh_stats.observation.add(&observation);
        });
    }
    shared_now
}

async fn share_observation(
    shared: &Arc<Shared>,
    instance: &Instance,
    observation: &RefreshObservation,
    now: i64,
) -> Result<(), StoreError> {
    let (id, policies) = (instance.id, &shared.access.policies);
    let overdue = shared.count(id, |stats| stats.overdue);
    let offered_per_ms = refresh_capacity::posts_per_ms(shared, instance).await?;
    let (store, observation) = (&shared.store, observation.clone());
    policies
        .share(store, id, observation, offered_per_ms, (overdue, now))
        .await
}
