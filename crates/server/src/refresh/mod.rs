//! Keeps stored posts fresh: workers that claim what is due, look it up and save it.
//!
//! Every process that shares a store runs its workers; claims keep them apart. A worker holds a
//! claim while it asks, and no transaction.

mod batch_ability;
mod canaries;
mod cross_check;
mod keyring;
mod look_up;
mod named;
mod offered;
mod options;
mod outbox_relay;
mod reader;
mod saving;
mod tally;
#[cfg(test)]
mod testing;
mod worker_pool;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use driftline_core::refresh::RefreshObservation;
use driftline_store::{
    CredentialId, InstanceId, Store, StoreError, Tx,
    instance::Instance,
    refresh::{Claims, bands, next_due_ms, overdue},
    source,
};
use metrics::gauge;
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
};

pub use options::RefreshOptions;
pub use outbox_relay::OutboxRelay;
pub use tally::Tally;

pub(crate) use keyring::ANONYMOUS;
pub(crate) use named::Named;

use crate::{
    access::Access,
    clock::now_ms,
    fault_log::{FaultLog, FaultLogs, Weight},
    span::show_ms,
};
use canaries::Canaries;
use named::Warned;
use worker_pool::WorkerPool;

/// The workers of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Refreshers {
    shared: Arc<Shared>,
    keeper: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// What all workers of a process share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) claims: Claims,
    pub(crate) options: RefreshOptions,
    canaries: Canaries,
    /// Of the workers of an instance, where it is not the whole store that fails.
    faults: FaultLogs<InstanceId>,
    /// Of credentials that this process cannot read.
    unusable: FaultLogs<CredentialId>,
    tally: std::sync::Mutex<HashMap<InstanceId, Tally>>,
    stop: watch::Sender<bool>,
}

impl Refreshers {
    /// Begins to refresh what is due, of every instance of the store.
    pub fn start(store: Store, access: Access, options: RefreshOptions) -> Self {
        let shared = Arc::new(Shared::new(store, access, options));
        let keeper = tokio::spawn(keep(Arc::clone(&shared)));
        Self {
            shared,
            keeper: Arc::new(Mutex::new(Some(keeper))),
        }
    }

    /// What this process's workers have done for an instance since they began.
    pub fn tally(&self, instance: InstanceId) -> Tally {
        let mut tally = Tally::default();
        self.shared.count(instance, |kept| tally = kept.clone());
        tally
    }

    /// Ends all workers: what they hold is given back.
    pub async fn stop(&self) {
        self.shared.stop.send_replace(true);
        if let Some(keeper) = self.keeper.lock().await.take() {
            let _ = keeper.await;
        }
    }
}

impl Shared {
    fn new(store: Store, access: Access, options: RefreshOptions) -> Self {
        let (stop, _) = watch::channel(false);
        Self {
            store,
            claims: access.claims.clone(),
            access,
            options,
            canaries: Canaries::default(),
            faults: FaultLogs::default(),
            unusable: FaultLogs::default(),
            tally: std::sync::Mutex::default(),
            stop,
        }
    }

    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    pub(crate) fn count(&self, instance: InstanceId, count: impl FnOnce(&mut Tally)) {
        let mut tallies = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = tallies.entry(instance).or_default();
        let before = tally.doubtful();
        count(tally);
        if tally.doubtful() > before {
            self.access.cache_invalidations.raise(instance);
        }
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.store.read(job).await
    }
}

/// Keeps a worker_pool for every instance.
async fn keep(shared: Arc<Shared>) {
    let mut stop = shared.stopped();
    let mut pools: HashMap<InstanceId, WorkerPool> = HashMap::new();
    let mut warned = Warned::default();
    let mut fault = FaultLog::default();
    while !*stop.borrow() {
        if !shared.access.store_fault.lasts().await {
            match scan(&shared, &mut pools, &mut warned).await {
                Ok(()) => {
                    if let Some(failed_ms) = fault.succeeded(now_ms()) {
                        tracing::warn!(
                            "schedules are looked after again, after {}",
                            show_ms(failed_ms)
                        );
                    }
                }
                Err(error) if shared.access.store_fault.takes(&error) => {}
                Err(error) => {
                    if fault.failed(Weight::Lasting, now_ms()) {
                        tracing::warn!(%error, "a schedule cannot be looked after; trying again");
                    }
                }
            }
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(shared.options.scan) => {}
        }
    }
    for (_, worker_pool) in pools {
        worker_pool.end().await;
    }
}

/// Looks after each instance, whatever is wrong with others; the first error.
async fn scan(
    shared: &Arc<Shared>,
    pools: &mut HashMap<InstanceId, WorkerPool>,
    warned: &mut Warned,
) -> Result<(), StoreError> {
    let mut outcome = warned.look(shared).await;
    let instances = shared.read(source::instances).await?;
    let is_over = *shared.stop.borrow();
    for (id, _) in pools.extract_if(|_, worker_pool| worker_pool.is_broken() && !is_over) {
        tracing::error!(instance = %id, "a worker broke; its instance begins anew");
    }
    for instance in instances {
        shared.count(instance.id, |tally| {
            tally.origin.clone_from(&instance.origin);
        });
        pools
            .entry(instance.id)
            .or_insert_with(|| WorkerPool::start(shared, &instance));
        outcome = outcome.and(look_after(shared, &instance).await);
    }
    outcome
}

/// Tells how far behind an instance is, and tells libraries what a dead worker left outbox.
async fn look_after(shared: &Arc<Shared>, instance: &Instance) -> Result<(), StoreError> {
    let (id, now) = (instance.id, now_ms());
    let first_due_ms = shared.read(move |tx| next_due_ms(tx, id, now)).await?;
    let oldest_ms = first_due_ms.map_or(0, |due_ms| now.saturating_sub(due_ms).max(0));
    let labels = [("instance", instance.origin.clone())];
    gauge!("driftline_refresh_oldest_overdue_seconds", &labels).set(oldest_ms as f64 / 1000.0);
    share_learned(shared, instance).await?;
    shared.access.outbox_relay.relay_what_is_left(id, now).await
}

/// Tells what this process's workers have seen, once in a few minutes, since it counts the whole
/// schedule for that, and takes up what all have taught.
async fn share_learned(shared: &Arc<Shared>, instance: &Instance) -> Result<(), StoreError> {
    let (id, now) = (instance.id, now_ms());
    let mut observation = None;
    shared.count(id, |tally| observation = tally.observation_to_share(now));
    let Some(observation) = observation else {
        return Ok(());
    };
    let told = share_observation(shared, instance, &observation, now).await;
    if told.is_err() {
        shared.count(id, |tally| tally.observation.add(&observation));
    }
    told
}

async fn share_observation(
    shared: &Arc<Shared>,
    instance: &Instance,
    observation: &RefreshObservation,
    now: i64,
) -> Result<(), StoreError> {
    let id = instance.id;
    let behind = shared.read(move |tx| overdue(tx, id, now)).await?;
    let labels = [("instance", instance.origin.clone())];
    gauge!("driftline_refresh_overdue_posts", &labels).set(behind.overdue as f64);
    gauge!("driftline_refresh_scheduled_posts", &labels).set(behind.scheduled as f64);
    show_staleness(shared, instance, now).await?;
    let offered_per_ms = offered::per_ms(shared, id).await?;
    let policies = &shared.access.policies;
    policies
        .tell(
            &shared.store,
            id,
            observation.clone(),
            offered_per_ms,
            (behind.overdue, now),
        )
        .await
}

/// Tells how old counts are, by age.
async fn show_staleness(
    shared: &Arc<Shared>,
    instance: &Instance,
    now: i64,
) -> Result<(), StoreError> {
    let id = instance.id;
    let ages = shared.access.policies.ages().clone();
    let table = ages.clone();
    let standings = shared.read(move |tx| bands(tx, id, &table, now)).await?;
    for (band, standing) in ages.bands().iter().zip(standings) {
        let labels = [
            ("instance", instance.origin.clone()),
            ("younger_than", format!("{}s", band.below_ms / 1000)),
        ];
        gauge!("driftline_refresh_staleness_seconds", &labels)
            .set(standing.mean_staleness_ms as f64 / 1000.0);
    }
    Ok(())
}
