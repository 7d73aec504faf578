//! Scans for sources to read, and for those to stop reading.

use std::{collections::HashMap, sync::Arc};

use driftline_runtime::now_ms;
use driftline_store::{
    SourceId, StoreError,
    source::{self, Source},
    source_lease::{self, Lease},
};

use super::{Shared, running::release};
use crate::{
    client::client_of,
    session::{Session, SessionError},
};

/// When to retry sources whose sessions have failed.
#[derive(Default)]
pub(super) struct Retries {
    by_source: HashMap<SourceId, Retry>,
}

struct Retry {
    failures: u32,
    due_ms: i64,
}

impl Retries {
    fn is_due(&self, source: SourceId, now_ms: i64) -> bool {
        let retry = self.by_source.get(&source);
        retry.is_none_or(|retry| retry.due_ms <= now_ms)
    }

    /// Each failure soon after the last try doubles the wait, up to `max_ms`.
    pub(super) fn failed(&mut self, source: SourceId, max_ms: i64, now_ms: i64) {
        let retry = self.by_source.entry(source).or_insert(Retry {
            failures: 0,
            due_ms: now_ms,
        });
        if now_ms.saturating_sub(retry.due_ms) > STEADY_MS {
            retry.failures = 0;
        }
        let wait_ms = MIN_RETRY_MS << retry.failures.min(20);
        retry.failures += 1;
        retry.due_ms = now_ms.saturating_add(wait_ms.min(max_ms));
    }

    fn keep(&mut self, sources: &[Source]) {
        self.by_source
            .retain(|id, _| sources.iter().any(|source| source.id == *id));
    }
}

/// Scans until `stop` is set.
pub(super) async fn scan(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    while !*stop.borrow() {
        if !shared.access.store_fault.lasts().await
            && let Err(error) = scan_once(&shared).await
        {
            shared.access.store_fault.failed(&error);
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(shared.options.scan) => {}
        }
    }
}

async fn scan_once(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let (sources, free) = shared
        .store
        .read(|tx| Ok::<_, StoreError>((source::list(tx)?, source_lease::free(tx)?)))
        .await?;
    shared.running.stop_obsolete(&sources);
    shared.retries.lock().keep(&sources);
    let ours: Vec<(&Source, Option<Lease>)> = sources
        .iter()
        .filter(|source| !source.paused && source.timeline != source::TRACKED)
        .filter_map(|source| {
            let left = left_behind(source, &shared.options.holder);
            let is_ours =
                left.is_some() || free.contains(&source.id) || shared.running.has(source.id);
            is_ours.then_some((source, left))
        })
        .collect();
    let names: Vec<_> = ours
        .iter()
        .map(|(source, _)| (source.id, &*source.name))
        .collect();
    shared.health.watch(&names, now_ms());
    for (source, left) in ours {
        if *shared.stop.borrow() {
            break;
        }
        if !shared.running.has(source.id) && shared.retries.lock().is_due(source.id, now_ms()) {
            begin(shared, source, left).await?;
        }
    }
    Ok(())
}

/// The lease that this process has on a source. If no session runs, the lease could not be released,
/// or the answer to its claim was lost. Only the scanner claims, so no session uses it.
fn left_behind(source: &Source, holder: &str) -> Option<Lease> {
    let holding = source.holding.as_ref()?;
    (holding.holder == holder).then_some(Lease {
        source: source.id,
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
    let (id, holder, ttl_ms) = (source.id, shared.options.holder.clone(), shared.ttl_ms());
    let claimed = shared
        .store
        .write(source::root(id), move |tx| {
            if let Some(left) = &left {
                source_lease::release(tx, left)?;
            }
            source_lease::claim(tx, id, &holder, ttl_ms)
        })
        .await;
    let lease = match claimed {
        Ok(Some(lease)) => lease,
        Ok(None) | Err(StoreError::NoSource) => return Ok(()),
        Err(error) => return failed(shared, id, error.into()),
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
            shared.running.begin(shared, session, lease);
            Ok(())
        }
        Err(error) => {
            release(shared, lease).await;
            failed(shared, id, error)
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

/// The longest wait after a fault of the source itself, so that a token that was added is found soon.
pub(super) const SOURCE_RETRY_MS: i64 = 10_000;
const MIN_RETRY_MS: i64 = 500;
/// A session that lived so long resets the backoff.
const STEADY_MS: i64 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;
    use driftline_runtime::STORE_RETRY_MS;

    #[test]
    fn the_wait_of_a_failing_source_doubles_until_a_session_lasts() {
        let source = SourceId::new(7);
        let mut retries = Retries::default();
        assert!(retries.is_due(source, 0));
        let mut now_ms = 10_000;
        for wait_ms in [500, 1_000, 2_000, 4_000, 4_000] {
            retries.failed(source, STORE_RETRY_MS, now_ms);
            now_ms += wait_ms;
            assert!(!retries.is_due(source, now_ms - 1));
            assert!(retries.is_due(source, now_ms));
        }
        now_ms += STEADY_MS + 1;
        retries.failed(source, STORE_RETRY_MS, now_ms);
        assert!(retries.is_due(source, now_ms + 500));
    }
}
