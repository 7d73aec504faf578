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
mod shared;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use driftline_runtime::now_ms;
use driftline_store::{SourceId, Store};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::JoinSet,
};

use crate::{sharing::Sharing, source_health::SourceHealth, upstream_access::UpstreamAccess};
use running::{RunningSet, Stop};
use shared::{FillRequest, Releases, Shared};

pub use shared::{PollersOptions, Progress};

/// The sessions of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Pollers {
    shared: Arc<Shared>,
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
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
