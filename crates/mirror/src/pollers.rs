//! The pollers: a session for each source that this process has a lease on.
//!
//! Three loops run next to the sessions. The scanner claims free sources and ends the sessions of
//! removed ones; the renewer renews the leases of running sessions, identified by their fences; the
//! third exports the health of sources. A session ends with the first error of the store, and the
//! scanner releases a lease that the session could not: there is one way to recover from any failure.

mod renewer;
mod running;
mod scanner;

use std::{sync::Arc, time::Duration};

use driftline_core::timeline::Machine;
use driftline_runtime::{STORE_RETRY_MS, Weight, now_ms};
use driftline_store::{SourceId, Store, StoreError, source::Source};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use crate::{
    session::SessionError,
    source_health::{SourceFault, SourceHealth},
    upstream_access::UpstreamAccess,
};
use running::RunningSet;
use scanner::{Retries, SOURCE_RETRY_MS};

/// Options of the pollers.
#[derive(Debug, Clone)]
pub struct PollersOptions {
    /// This process's name on its leases: unique among the processes that
    /// share a store.
    pub holder: String,
    /// How long a lease lasts without renewal. After this long, other processes take over the sources
    /// of a dead process.
    pub lease: Duration,
    /// How often to scan for sources that are free, new, paused or removed.
    pub scan: Duration,
}

impl PollersOptions {
    /// The default times, for a process of that name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease: Duration::from_secs(5),
            scan: Duration::from_secs(1),
        }
    }
}

/// The state of a source that is being read.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The source.
    pub source: Arc<Source>,
    /// Its machine.
    pub machine: Arc<Machine>,
}

/// The sessions of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Pollers {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    access: UpstreamAccess,
    options: PollersOptions,
    running: RunningSet,
    retries: Mutex<Retries>,
    health: SourceHealth,
    /// Ends the scanner.
    stop: watch::Sender<bool>,
    /// Ends the loops that run until the last session has ended.
    over: watch::Sender<bool>,
    scanner: Mutex<JoinSet<()>>,
    others: Mutex<JoinSet<()>>,
}

struct FillRequest {
    low: driftline_core::upstream_id::UpstreamId,
    answer: oneshot::Sender<bool>,
}

impl Pollers {
    /// Begins to read every source of the store that no other process has a lease on.
    pub fn start(store: Store, access: UpstreamAccess, options: PollersOptions) -> Self {
        let shared = Arc::new(Shared {
            store,
            access,
            options,
            running: RunningSet::default(),
            retries: Mutex::default(),
            health: SourceHealth::default(),
            stop: watch::channel(false).0,
            over: watch::channel(false).0,
            scanner: Mutex::default(),
            others: Mutex::default(),
        });
        let scanner = scanner::scan(Arc::clone(&shared));
        shared.scanner.lock().spawn(scanner);
        let renewer = renewer::renew(Arc::clone(&shared));
        shared.others.lock().spawn(renewer);
        shared.others.lock().spawn(show(Arc::clone(&shared)));
        Self { shared }
    }

    /// The states of the sources of this process.
    pub async fn progress(&self) -> Vec<Progress> {
        self.shared.running.progress()
    }

    /// The health of the sources that this process is to read.
    pub fn health(&self) -> SourceHealth {
        self.shared.health.clone()
    }

    /// Whether this process also refreshes stored posts.
    pub fn refreshes(&self) -> bool {
        self.shared.access.refreshes
    }

    /// Requests that a source of this process fill an open gap. `low` is its lowest ID. `None` if this
    /// process does not read the source.
    pub async fn fill(
        &self,
        source: SourceId,
        low: driftline_core::upstream_id::UpstreamId,
    ) -> Option<bool> {
        let fill_requests: mpsc::Sender<FillRequest> = self.shared.running.fill_requests(source)?;
        let (answer, answered) = oneshot::channel();
        fill_requests.send(FillRequest { low, answer }).await.ok()?;
        answered.await.ok()
    }

    /// Ends the session of a source after the current commit, and releases its lease. The next scan
    /// starts another one unless the source is paused.
    pub async fn release(&self, source: SourceId) {
        self.shared.running.end(source).await;
    }

    /// Ends all sessions, each after its current commit, and releases their leases.
    pub async fn stop(&self) {
        let shared = &self.shared;
        // The scanner may be about to start a session, so it ends first.
        shared.stop.send_replace(true);
        end(&shared.scanner).await;
        shared.running.end_all().await;
        shared.over.send_replace(true);
        end(&shared.others).await;
    }
}

impl Shared {
    fn ttl_ms(&self) -> i64 {
        i64::try_from(self.options.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// Records why no session reads a source. A fault of the source alone is logged for the source; an
    /// outage of the store is logged once for all sources.
    fn halted(&self, source: SourceId, error: &SessionError) {
        let now = now_ms();
        let kind = match error {
            // Another process reads it, or it was removed: no fault.
            SessionError::Store(StoreError::LeaseLost | StoreError::NoSource) => {
                return self.health.ended(source, now);
            }
            SessionError::Store(error) if error.is_outage() => {
                self.access.store_fault.failed(error);
                let fault = SourceFault::new(SourceFault::STORE, error);
                self.health.halted(source, fault, None, now);
                return self.retries.lock().failed(source, STORE_RETRY_MS, now);
            }
            SessionError::Store(_) => "stored",
            SessionError::Client(_) => "client",
        };
        self.halted_by(source, SourceFault::new(kind, error));
    }

    /// Records a fault of one source, or of this program.
    fn halted_by(&self, source: SourceId, fault: SourceFault) {
        let (now, weight) = (now_ms(), Some(Weight::Lasting));
        self.health.halted(source, fault, weight, now);
        self.retries.lock().failed(source, SOURCE_RETRY_MS, now);
    }
}

async fn end(tasks: &Mutex<JoinSet<()>>) {
    let mut tasks = std::mem::take(&mut *tasks.lock());
    while tasks.join_next().await.is_some() {}
}

/// Exports the health of sources, also during an outage of the store.
async fn show(shared: Arc<Shared>) {
    let showing = async {
        loop {
            shared.health.show(now_ms());
            tokio::time::sleep(SHOW_EVERY).await;
        }
    };
    let mut over = shared.over.subscribe();
    tokio::select! {
        _ = over.wait_for(|over| *over) => {}
        () = showing => {}
    }
}

const SHOW_EVERY: Duration = Duration::from_secs(1);
