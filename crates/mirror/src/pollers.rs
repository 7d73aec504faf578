//! The pollers: a session for each source that this process has a lease on.
//!
//! Three loops run next to the sessions. The keeper renews the membership of this process and the
//! leases of running sessions, identified by their fences, and looks at what others change; the scanner claims this
//! process's share of the sources, several at a time, and ends the sessions of those that are to be given back or are removed; the third exports the
//! health of sources. None of them waits for a source that others hold. A session ends with the first error of the
//! store, and the scanner releases a lease that the session could not: there is one way to recover from
//! any failure.

mod keeper;
mod retries;
mod running;
mod scanner;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use driftline_core::timeline::Machine;
use driftline_runtime::{STORE_RETRY_MS, Weight, now_ms, steady_ms};
use driftline_store::{SourceId, Store, StoreError, source::Source, source_lease::Lease};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::JoinSet,
};

use crate::{
    session::SessionError,
    sharing::{Membership, Sharing},
    source_health::{SourceFault, SourceHealth},
    upstream_access::UpstreamAccess,
};
use retries::{Retries, SOURCE_RETRY_MS};
use running::{RunningSet, Stop};

/// Options of the pollers.
#[derive(Debug, Clone)]
pub struct PollersOptions {
    /// This process's name on its leases: unique among the processes that
    /// share a store.
    pub holder: String,
    /// How long a lease lasts without renewal. After this long, other processes take over the sources
    /// of a dead process.
    pub lease: Duration,
    /// How often a process that is no member scans for sources that are free, new, paused or removed.
    pub scan: Duration,
    /// How it shares the sources with other processes; without it, it takes all that nobody holds.
    pub membership: Option<Membership>,
}

impl PollersOptions {
    /// The default times, for a process of that name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease: Duration::from_secs(4),
            scan: Duration::from_secs(1),
            membership: None,
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
    sharing: Sharing,
    running: RunningSet,
    releases: Releases,
    retries: Mutex<Retries>,
    /// Notifies the scanner of a session that is to be started again after a while.
    has_failed: Notify,
    health: SourceHealth,
    /// Ends the scanner.
    stop: watch::Sender<bool>,
    /// Ends the loops that run until the last session has ended.
    over: watch::Sender<bool>,
    scanner: Mutex<JoinSet<()>>,
    others: Mutex<JoinSet<()>>,
}

/// Leases that are to be given back, together.
#[derive(Default)]
struct Releases {
    waiting: Mutex<Vec<Lease>>,
    turn: tokio::sync::Mutex<()>,
}

struct FillRequest {
    low: driftline_core::upstream_id::UpstreamId,
    answer: oneshot::Sender<bool>,
}

impl Pollers {
    /// Begins to read this process's share of the sources; all that no other process has a lease on, if
    /// it is no member.
    pub fn start(store: Store, access: UpstreamAccess, options: PollersOptions) -> Self {
        let sharing = Sharing::new(options.holder.clone(), options.membership.clone());
        let shared = Arc::new(Shared {
            store,
            access,
            options,
            sharing,
            running: RunningSet::default(),
            releases: Releases::default(),
            retries: Mutex::default(),
            has_failed: Notify::new(),
            health: SourceHealth::default(),
            stop: watch::channel(false).0,
            over: watch::channel(false).0,
            scanner: Mutex::default(),
            others: Mutex::default(),
        });
        let scanner = scanner::scan(Arc::clone(&shared));
        shared.scanner.lock().spawn(scanner);
        let keeper = keeper::keep(Arc::clone(&shared));
        shared.others.lock().spawn(keeper);
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

    /// This process's part in the shared work.
    pub fn sharing(&self) -> Sharing {
        self.shared.sharing.clone()
    }

    /// Whether this process also refreshes stored posts.
    pub fn refreshes(&self) -> bool {
        self.shared.access.refreshes
    }

    /// Whether nothing is read for want of room on the disk.
    pub fn is_out_of_room(&self) -> bool {
        self.shared.access.store_disk.low().is_some()
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

    /// Leaves the members and ends all sessions, each after its current commit, and releases their
    /// leases. A fetch in flight is dropped.
    pub async fn stop(&self) {
        let shared = &self.shared;
        shared.stop.send_replace(true);
        shared.running.signal_all(Stop::Now);
        let left = tokio::time::timeout(LEAVE_TIMEOUT, shared.sharing.leave(&shared.store));
        // The scanner may be about to start a session, so it ends first.
        let (left, ()) = tokio::join!(left, end(&shared.scanner));
        if !matches!(left, Ok(Ok(()))) {
            tracing::info!("the membership was not ended; it will expire");
        }
        shared.running.end_all().await;
        shared.over.send_replace(true);
        end(&shared.others).await;
    }
}

impl Shared {
    fn ttl_ms(&self) -> i64 {
        i64::try_from(self.options.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// How often to look whether anything has changed.
    fn look_every(&self) -> Duration {
        match self.sharing.is_member() {
            true => LOOK_EVERY.min(self.options.scan),
            false => self.options.scan,
        }
    }

    /// How often to read everything, whatever has changed.
    fn read_all_every(&self) -> Duration {
        match self.sharing.is_member() {
            true => READ_ALL_EVERY,
            false => Duration::ZERO,
        }
    }

    /// Publishes the sources that this process cannot read.
    fn publish_refusals(&self) {
        let refused = self.retries.lock().refused();
        self.sharing.set_refused_sources(refused);
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
                let mut retries = self.retries.lock();
                retries.failed(source, false, STORE_RETRY_MS, steady_ms());
                return self.has_failed.notify_one();
            }
            SessionError::Store(_) => "stored",
            SessionError::Client(_) => "client",
        };
        self.halted_by(source, SourceFault::new(kind, error));
    }

    /// Tries a source again after a while whose row another transaction holds.
    fn is_held_up(&self, source: SourceId) {
        let mut retries = self.retries.lock();
        retries.failed(source, false, HELD_RETRY_MS, steady_ms());
        self.has_failed.notify_one();
    }

    /// Records a fault of one source, or of this program.
    fn halted_by(&self, source: SourceId, fault: SourceFault) {
        let (now, weight) = (now_ms(), Some(Weight::Lasting));
        self.health.halted(source, fault, weight, now);
        self.retries
            .lock()
            .failed(source, true, SOURCE_RETRY_MS, steady_ms());
        self.publish_refusals();
        self.has_failed.notify_one();
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
/// So that what a process gives back as it ends is taken over within half a second.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// What raises no number of changes is noticed within this.
const READ_ALL_EVERY: Duration = Duration::from_secs(10);
/// A short lock, as of a change of its settings, delays a source by the first wait for a retry only.
const HELD_RETRY_MS: i64 = 1_000;
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
