//! Outages of the store, logged once for the whole process.

use std::{fmt::Display, sync::Arc};

use driftline_store::{Store, StoreError};
use parking_lot::Mutex;

use crate::{
    clock::now_ms,
    fault_log::{FaultLog, Weight},
    span::show_ms,
    store_probe::{ProbeError, StoreProbe},
};

/// The state of the store for all components of the process. Clones share it.
#[derive(Clone)]
pub struct StoreFault {
    probe: StoreProbe,
    seen: Arc<Mutex<OutageState>>,
}

#[derive(Default)]
struct OutageState {
    log: FaultLog,
    /// The time of the last error, in Unix ms.
    failed_at_ms: i64,
    /// The time of the first success after the error, in Unix ms.
    works_since_ms: Option<i64>,
}

impl StoreFault {
    /// A state without an outage so far.
    pub fn new(store: Store) -> Self {
        Self {
            probe: StoreProbe::new(store),
            seen: Arc::default(),
        }
    }

    /// Records an outage of the store.
    pub fn failed(&self, error: &dyn Display) {
        let mut seen = self.seen.lock();
        let now = now_ms();
        seen.failed_at_ms = now;
        seen.works_since_ms = None;
        if seen.log.failed(Weight::Lasting, now) {
            tracing::warn!(%error, "the store fails; work that needs it resumes when it is back");
        }
    }

    /// Records an error if it is an outage. Returns true if it is.
    pub fn takes(&self, error: &StoreError) -> bool {
        let is_outage = error.is_outage();
        if is_outage {
            self.failed(error);
        }
        is_outage
    }

    /// True while an outage lasts. Probes the store only after a failure.
    pub async fn lasts(&self) -> bool {
        if self.seen.lock().log.since_ms().is_none() {
            return false;
        }
        match self.probe.check().await {
            Ok(()) => {
                self.answered(now_ms());
                false
            }
            Err(ProbeError::Read(error) | ProbeError::Write(error)) => {
                self.failed(&error);
                true
            }
            Err(ProbeError::Silent) => true,
        }
    }

    /// Records a successful probe. An almost full disk may accept a probe and no page. The outage
    /// therefore ends only when nothing has failed for longer than a source waits.
    fn answered(&self, now_ms: i64) {
        let mut seen = self.seen.lock();
        let works_since_ms = *seen.works_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(seen.failed_at_ms) <= STORE_RETRY_MS + SURE_MS {
            return;
        }
        let since_ms = seen.log.since_ms().unwrap_or(works_since_ms);
        if seen.log.succeeded(now_ms).is_some() {
            let failed_ms = works_since_ms.saturating_sub(since_ms);
            tracing::warn!(
                "the store works again; it failed for {}",
                show_ms(failed_ms)
            );
        }
    }
}

/// The longest wait after an outage, so that all work resumes soon after the store.
pub const STORE_RETRY_MS: i64 = 4_000;
const SURE_MS: i64 = 1_500;
