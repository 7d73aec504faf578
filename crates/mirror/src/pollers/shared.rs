//! What the loops of the pollers share.

use std::{sync::Arc, time::Duration};

use driftline_core::timeline::Machine;
use driftline_runtime::{STORE_RETRY_MS, Weight, now_ms, steady_ms};
use driftline_store::{SourceId, Store, StoreError, source::Source, source_lease::Lease};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot, watch},
    task::JoinSet,
};

use super::{
    retries::{Retries, SOURCE_RETRY_MS},
    running::RunningSet,
};
use crate::{
    session::SessionError,
    sharing::{Membership, Sharing},
    source_health::{SourceFault, SourceHealth},
    upstream_access::UpstreamAccess,
};

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

pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) access: UpstreamAccess,
    pub(super) options: PollersOptions,
    pub(super) sharing: Sharing,
    pub(super) running: RunningSet,
    pub(super) releases: Releases,
    pub(super) retries: Mutex<Retries>,
    /// Notifies the scanner of a session that is to be started again after a while.
    pub(super) has_failed: Notify,
    pub(super) health: SourceHealth,
    /// Ends the scanner.
    pub(super) stop: watch::Sender<bool>,
    /// Ends the loops that run until the last session has ended.
    pub(super) over: watch::Sender<bool>,
    pub(super) scanner: Mutex<JoinSet<()>>,
    pub(super) others: Mutex<JoinSet<()>>,
}

impl Shared {
    pub(super) fn ttl_ms(&self) -> i64 {
        i64::try_from(self.options.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// How often to look whether anything has changed.
    pub(super) fn look_every(&self) -> Duration {
        match self.sharing.is_member() {
            true => LOOK_EVERY.min(self.options.scan),
            false => self.options.scan,
        }
    }

    /// How often to read everything, whatever has changed.
    pub(super) fn read_all_every(&self) -> Duration {
        match self.sharing.is_member() {
            true => READ_ALL_EVERY,
            false => Duration::ZERO,
        }
    }

    /// Publishes the sources that this process cannot read.
    pub(super) fn publish_refusals(&self) {
        let refused = self.retries.lock().refused();
        self.sharing.set_refused_sources(refused);
    }

    /// Records why no session reads a source. A fault of the source alone is logged for the source; an
    /// outage of the store is logged once for all sources.
    pub(super) fn halted(&self, source: SourceId, error: &SessionError) {
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
    pub(super) fn is_held_up(&self, source: SourceId) {
        let mut retries = self.retries.lock();
        retries.failed(source, false, HELD_RETRY_MS, steady_ms());
        self.has_failed.notify_one();
    }

    /// Records a fault of one source, or of this program.
    pub(super) fn halted_by(&self, source: SourceId, fault: SourceFault) {
        let (now, weight) = (now_ms(), Some(Weight::Lasting));
        self.health.halted(source, fault, weight, now);
        self.retries
            .lock()
            .failed(source, true, SOURCE_RETRY_MS, steady_ms());
        self.publish_refusals();
        self.has_failed.notify_one();
    }
}

pub(super) struct FillRequest {
    pub(super) low: driftline_core::upstream_id::UpstreamId,
    pub(super) answer: oneshot::Sender<bool>,
}

/// Leases that are to be given back, together.
#[derive(Default)]
pub(super) struct Releases {
    pub(super) waiting: Mutex<Vec<Lease>>,
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// So that what a process gives back as it ends is taken over within half a second.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// What raises no number of changes is noticed within this.
const READ_ALL_EVERY: Duration = Duration::from_secs(10);

/// A short lock, as of a change of its settings, delays a source by the first wait for a retry only.
const HELD_RETRY_MS: i64 = 1_000;
