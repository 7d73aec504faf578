//! The pollers: a session for each source that this process holds.
//!
//! Three loops run beside the sessions. The scanner claims what is free and ends what is gone; the
//! renewer lets the leases of running sessions last, named by their fences; and a third shows how
//! sources are doing. A session ends with the first error of the store, and the scanner takes the
//! lease back that it could not give back: one way leads on from whatever has failed.

mod renewer;
mod running;
mod scanner;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use driftline_core::timeline::Machine;
use driftline_store::{SourceId, Store, StoreError, source::Source};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{JoinError, JoinHandle},
};

use crate::{
    access::Access,
    clock::now_ms,
    fault_log::Weight,
    session::SessionError,
    source_health::{SourceFault, SourceHealth},
    store_fault::STORE_RETRY_MS,
};
use running::RunningSet;
use scanner::{Retries, SOURCE_RETRY_MS};

/// How the pollers hold their sources.
#[derive(Debug, Clone)]
pub struct PollersOptions {
    /// This process's name on its leases: unique among the processes that
    /// share a store.
    pub holder: String,
    /// How long a lease lasts without renewal; another process takes a dead
    /// one's sources over after this long.
    pub lease: Duration,
    /// How often sources are looked for that are free, new, paused or removed.
    pub scan: Duration,
}

impl PollersOptions {
    /// The usual times, for a process of that name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease: Duration::from_secs(5),
            scan: Duration::from_secs(1),
        }
    }
}

/// How a source stands while it is read.
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
    access: Access,
    options: PollersOptions,
    running: RunningSet,
    retries: Mutex<Retries>,
    health: SourceHealth,
    /// Ends the scanner.
    stop: watch::Sender<bool>,
    /// Ends what is needed until the last session has ended.
    over: watch::Sender<bool>,
    scanner: Mutex<Option<JoinHandle<()>>>,
    others: Mutex<Vec<JoinHandle<()>>>,
}

struct FillRequest {
    low: driftline_core::upstream_id::UpstreamId,
    answer: oneshot::Sender<bool>,
}

impl Pollers {
    /// Begins to read every source of the store that no other process holds.
    pub fn start(store: Store, access: Access, options: PollersOptions) -> Self {
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
        let scanner = tokio::spawn(scanner::scan(Arc::clone(&shared)));
        *lock(&shared.scanner) = Some(scanner);
        lock(&shared.others).extend([
            tokio::spawn(renewer::renew(Arc::clone(&shared))),
            tokio::spawn(show(Arc::clone(&shared))),
        ]);
        Self { shared }
    }

    /// How the sources of this process stand.
    pub async fn progress(&self) -> Vec<Progress> {
        self.shared.running.progress()
    }

    /// How the sources that this process is to read are doing.
    pub fn health(&self) -> SourceHealth {
        self.shared.health.clone()
    }

    /// Whether this process refreshes stored posts besides.
    pub fn refreshes(&self) -> bool {
        self.shared.access.refreshes
    }

    /// Asks a source of this process to fill an open gap, named by its lowest
    /// ID. `None` if this process does not read the source.
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

    /// Ends reading one source now, after the commit in hand, and gives its
    /// lease back. It begins again at the next scan unless it is paused.
    pub async fn release(&self, source: SourceId) {
        self.shared.running.end(source).await;
    }

    /// Ends all sessions, each after the commit in hand, and gives their
    /// leases back.
    pub async fn stop(&self) {
        let shared = &self.shared;
        // The scanner may be about to begin a session, so it ends first.
        shared.stop.send_replace(true);
        let scanner = lock(&shared.scanner).take();
        if let Some(scanner) = scanner {
            let _ = scanner.await;
        }
        shared.running.end_all().await;
        shared.over.send_replace(true);
        let others: Vec<_> = lock(&shared.others).drain(..).collect();
        for other in others {
            let _ = other.await;
        }
    }
}

impl Shared {
    fn retries(&self) -> MutexGuard<'_, Retries> {
        lock(&self.retries)
    }

    fn ttl_ms(&self) -> i64 {
        i64::try_from(self.options.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// Takes in why no session reads a source. What is about the source alone is told of it; what
    /// the whole store does is told once for all sources.
    fn halted(&self, source: SourceId, error: &SessionError) {
        let now = now_ms();
        let (fault, weight, max_ms) = match error {
            // Another process reads it, or nobody is to: nothing is wrong.
            SessionError::Store(StoreError::LeaseLost | StoreError::NoSource) => {
                return self.health.ended(source, now);
            }
            SessionError::Store(error) if error.is_outage() => {
                self.access.store_fault.failed(error);
                (SourceFault::of_store(error), None, STORE_RETRY_MS)
            }
            SessionError::Store(error) => {
                let fault = SourceFault::of_stored(error);
                (fault, Some(Weight::Lasting), SOURCE_RETRY_MS)
            }
            SessionError::Client(error) => {
                let fault = SourceFault::of_client(error);
                (fault, Some(Weight::Lasting), SOURCE_RETRY_MS)
            }
        };
        self.health.halted(source, fault, weight, now);
        self.retries().failed(source, max_ms, now);
    }

    /// Takes in that a session's task broke, which is an error of this program.
    fn halted_by_bug(&self, source: SourceId, error: &JoinError) {
        let now = now_ms();
        let fault = SourceFault::of_bug(error);
        self.health
            .halted(source, fault, Some(Weight::Lasting), now);
        self.retries().failed(source, SOURCE_RETRY_MS, now);
    }
}

/// Shows how sources are doing, whatever the store does.
async fn show(shared: Arc<Shared>) {
    let mut over = shared.over.subscribe();
    while !*over.borrow() {
        shared.health.show(now_ms());
        tokio::select! {
            _ = over.changed() => {}
            () = tokio::time::sleep(SHOW_EVERY) => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SHOW_EVERY: Duration = Duration::from_secs(1);
