//! Starts the sessions of this process's share of the sources, and ends those that are no more of it.

use std::{sync::Arc, time::Duration};

use driftline_runtime::{
    metrics::{
        SHARING_GIVEN_BACK, SHARING_HELD, SHARING_MEMBERS, SHARING_SHARE, SHARING_TAKEN_OVER,
    },
    now_ms,
};
use driftline_store::{
    SourceId, StoreError,
    source::{self, Source},
    source_lease::{self, Lease},
};
use tokio::{sync::Semaphore, task::JoinSet};

use super::{Shared, running::release};
use crate::{
    client::client_of,
    session::{Session, SessionError},
    sharing::View,
};

/// Acts on each view, and on sources whose time to be tried again has come, until `stop` is set.
pub(super) async fn scan(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    let mut view = shared.sharing.view();
    while !*stop.borrow() {
        let current = view.borrow_and_update().clone();
        let has_acted = match current {
            Some(current) if !shared.access.store_fault.lasts().await => {
                let acted = act(&shared, &current).await;
                if let Err(error) = &acted {
                    shared.access.store_fault.failed(error);
                }
                acted.is_ok()
            }
            _ => false,
        };
        let now_ms = now_ms();
        let next_ms = shared.retries.lock().next_due_ms(now_ms);
        let wait_ms = next_ms.map_or(MAX_WAIT_MS, |next_ms| next_ms.saturating_sub(now_ms));
        // Without an act, what was due then still is.
        let max_ms = if has_acted {
            MAX_WAIT_MS
        } else {
            SKIPPED_WAIT_MS
        };
        let wait_ms = wait_ms.clamp(MIN_WAIT_MS, max_ms).unsigned_abs();
        tokio::select! {
            _ = stop.changed() => {}
            _ = view.changed() => {}
            () = shared.has_failed.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => shared.sharing.look_now(),
        }
    }
}

async fn act(shared: &Arc<Shared>, view: &View) -> Result<(), StoreError> {
    let sources = &view.sources;
    shared.running.stop_obsolete(sources);
    shared.retries.lock().sync(sources, now_ms());
    retry_refused(shared, view);
    // What is tried again counts in nobody's share, until it works.
    let is_on_trial = |id| shared.retries.lock().is_refused(id) && view.unable.contains(&id);
    let given = shared
        .running
        .give_back(|id| view.give_back.contains(&id) && !is_on_trial(id));
    SHARING_GIVEN_BACK.increment(given as u64);
    let ours: Vec<&Source> = sources
        .iter()
        .filter(|source| {
            let id = source.id;
            let is_ours = view.own.contains(&id) || view.is_active && view.unable.contains(&id);
            is_ours || shared.running.has(id)
        })
        .collect();
    let names: Vec<_> = ours
        .iter()
        .map(|source| (source.id, &*source.name))
        .collect();
    shared.health.watch(&names, now_ms());
    SHARING_MEMBERS.set(view.members as f64);
    SHARING_SHARE.with(["sources"]).set(view.own.len() as f64);
    SHARING_SHARE.with(["buckets"]).set(view.buckets as f64);
    let (room, mut beginning) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for source in sources {
        let left = left_behind(source, &shared.options.holder);
        if *shared.stop.borrow() || shared.running.has(source.id) {
            continue;
        }
        let is_free = left.is_some() || view.free.contains(&source.id);
        if ours.iter().any(|of| of.id == source.id) && is_free {
            if shared.retries.lock().is_due(source.id, now_ms()) {
                let (shared, source) = (Arc::clone(shared), source.clone());
                let room = Arc::clone(&room);
                beginning.spawn(async move {
                    let _permit = room.acquire().await;
                    begin(&shared, &source, left).await
                });
            }
        } else if let Some(left) = left {
            release(shared, left).await;
        }
    }
    let mut outcome = Ok(());
    while let Some(began) = beginning.join_next().await {
        match began {
            Ok(began) => outcome = outcome.and(began),
            Err(error) => tracing::error!(%error, "the start of a session panicked"),
        }
    }
    SHARING_HELD
        .with(["sources"])
        .set(shared.running.leases().len() as f64);
    SHARING_HELD.with(["buckets"]).set(view.buckets as f64);
    outcome
}

/// Sources that were refused and that others read, or that can be read again as far as can be said
/// without a request.
fn retry_refused(shared: &Shared, view: &View) {
    let now_ms = now_ms();
    for source in &view.sources {
        let is_due = {
            let retries = shared.retries.lock();
            retries.is_refused(source.id) && retries.is_due(source.id, now_ms)
        };
        if !is_due || shared.running.has(source.id) || view.unable.contains(&source.id) {
            continue;
        }
        match client_of(source, &shared.access) {
            Ok(_) => drop(shared.retries.lock().succeeded(source.id)),
            Err(error) => shared.halted(source.id, &error.into()),
        }
    }
    shared.publish_refusals();
}

/// The lease that this process has on a source. If no session runs, the lease could not be released,
/// or the answer to its claim was lost. Only the scanner claims, so no session uses it.
fn left_behind(source: &Source, holder: &str) -> Option<Lease> {
    let holding = source.holding.as_ref()?;
    (holding.holder == holder).then_some(Lease {
        source: source.key(),
        fence: holding.fence,
        until_ms: holding.until_ms,
    })
}

/// Starts a session if the source can be claimed. Returns only errors of the whole store.
async fn begin(
    shared: &Arc<Shared>,
    source: &Source,
    left: Option<Lease>,
) -> Result<(), StoreError> {
    // A process without the token leaves the source to processes that have it.
    if let Err(error) = client_of(source, &shared.access) {
        return failed(shared, source.id, error.into());
    }
    let (key, holder, ttl_ms) = (source.key(), shared.options.holder.clone(), shared.ttl_ms());
    let claimed = shared
        .store
        .write(source::root(key), move |tx| {
            if let Some(left) = &left {
                source_lease::release(tx, left)?;
            }
            source_lease::claim(tx, key, &holder, ttl_ms)
        })
        .await;
    let lease = match claimed {
        Ok(Some(lease)) => lease,
        Ok(None) | Err(StoreError::NoSource) => {
            shared.sharing.look_now();
            return Ok(());
        }
        Err(error) => return failed(shared, key.id, error.into()),
    };
    let opened = Session::open(
        shared.store.clone(),
        &shared.access,
        source.clone(),
        Some(lease.fence),
    );
    match opened.await {
        Ok(session) => {
            tracing::info!(source = %source.name, fence = lease.fence, "reading started");
            let before = source.holding.as_ref().map(|holding| &*holding.holder);
            if before.is_some_and(|before| before != shared.options.holder) {
                SHARING_TAKEN_OVER.increment(1);
            }
            shared.running.begin(shared, session, lease);
            Ok(())
        }
        Err(error) => {
            release(shared, lease).await;
            failed(shared, key.id, error)
        }
    }
}

/// Records why a source is not read. Returns only errors of the whole store, which end the scan.
fn failed(shared: &Shared, source: SourceId, error: SessionError) -> Result<(), StoreError> {
    shared.halted(source, &error);
    match error {
        SessionError::Store(error) if error.is_outage() => Err(error),
        _ => Ok(()),
    }
}

/// Sources whose sessions are opened at a time.
const AT_ONCE: usize = 8;
const MIN_WAIT_MS: i64 = 100;
const MAX_WAIT_MS: i64 = 60_000;
const SKIPPED_WAIT_MS: i64 = 500;
