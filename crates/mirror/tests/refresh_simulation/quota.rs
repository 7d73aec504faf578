//! Requests of the quota.

use driftline_core::quota::{Grant, QuotaLedger, QuotaPurpose, WINDOW_EDGE_MS};
use driftline_store::{StoreError, credential, quota};

use super::{Simulation, WINDOW_MS};

impl Simulation {
    /// Keeps a request for later in its window.
    pub(super) fn put_back(&mut self) {
        let ends_ms = (self.now_ms / WINDOW_MS + 1) * WINDOW_MS;
        let kept = if self.held.1 == ends_ms {
            self.held.0
        } else {
            0
        };
        self.held = (kept + 1, ends_ms);
    }

    pub(super) fn take(&mut self) -> Grant {
        if self.held.0 > 0 && self.now_ms < self.held.1 - WINDOW_EDGE_MS {
            self.held.0 -= 1;
            return Grant::Requests(1);
        }
        let (key, now_ms, posts) = (self.credential, self.now_ms, self.batch as u32);
        let (grant, is_blind) = self
            .store
            .write_blocking(credential::root(key), move |tx| {
                let mut ledger = quota::load(tx, key, "requests")?;
                let grant = ledger.take(1, posts, QuotaPurpose::Refresh, 0.2, now_ms);
                quota::store(tx, key, "requests", &ledger)?;
                Ok::<_, StoreError>((grant, ledger.windows().is_empty()))
            })
            .unwrap();
        self.blind += u32::from(is_blind);
        grant
    }

    pub(super) fn notify(
        &mut self,
        mut change: impl FnMut(&mut QuotaLedger, i64) + Send + 'static,
    ) {
        let (key, now_ms) = (self.credential, self.now_ms);
        self.store
            .write_blocking(credential::root(key), move |tx| {
                let mut ledger = quota::load(tx, key, "requests")?;
                change(&mut ledger, now_ms);
                quota::store(tx, key, "requests", &ledger)
            })
            .unwrap();
    }
}
