//! Requests of the quota.

use driftline_core::quota::{Grant, QuotaLedger, RequestPriority, WINDOW_EDGE_MS};
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
        let (id, now_ms, posts) = (self.credential, self.now_ms, self.batch as u32);
        let (grant, is_blind) = self
            .store
            .write_blocking(credential::root(id), move |tx| {
                let mut ledger = quota::load(tx, id, "requests")?;
                let priority = RequestPriority::Refresh {
                    left_to_polling: 0.2,
                };
                let grant = ledger.take(1, posts, priority, now_ms);
                quota::store(tx, id, "requests", &ledger)?;
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
        let (id, now_ms) = (self.credential, self.now_ms);
        self.store
            .write_blocking(credential::root(id), move |tx| {
                let mut ledger = quota::load(tx, id, "requests")?;
                change(&mut ledger, now_ms);
                quota::store(tx, id, "requests", &ledger)
            })
            .unwrap();
    }
}
