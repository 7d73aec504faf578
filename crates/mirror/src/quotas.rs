//! The quotas of credentials, as this process uses them.
//!
//! Requests are taken from the store's ledger in small blocks before they are sent, so that no other
//! process can take them. The block of a process that dies is lost until its window ends, which is
//! the safe side.

mod block;
mod look_up_pace;
mod quota;

use std::{collections::HashMap, sync::Arc};

use driftline_core::quota::{LedgerAge, QuotaLedger, QuotaPurpose};
use driftline_runtime::now_ms;
use driftline_store::{
    CredentialId, InstanceId, Store, StoreError,
    credential::{self, Credential, Quarantine},
};
use parking_lot::Mutex;

use self::{block::Blocks, look_up_pace::LookUpPace};
use crate::month;

pub use self::quota::{Charge, Permit, Quota};

/// The quotas of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Quotas {
    store: Store,
    polling_share: f64,
    known: Arc<Mutex<KnownQuotas>>,
}

/// What this process knows of the quotas that it uses.
#[derive(Default)]
struct KnownQuotas {
    /// The last known ledgers: most answers change nothing in them.
    ledgers: HashMap<(CredentialId, &'static str), QuotaLedger>,
    /// How old the stored ledgers are, whatever the wall clock does.
    ages: HashMap<(CredentialId, &'static str), LedgerAge>,
    blocks: Blocks,
    look_up_pace: LookUpPace,
    /// When each server last answered a request of this process as it should, Unix ms.
    answered_ms: HashMap<InstanceId, i64>,
}

impl Quotas {
    /// The quotas of a store's credentials. Refreshing leaves to polling this share, 0 to 1, of
    /// what is left of each window.
    pub fn new(store: Store, polling_share: f64) -> Self {
        Self {
            store,
            polling_share,
            known: Arc::default(),
        }
    }

    /// The share of each window that refreshing leaves to polling, 0 to 1.
    pub fn polling_share(&self) -> f64 {
        self.polling_share
    }

    /// The quota of a credential for a family of endpoints.
    pub fn of(&self, credential: &Credential, scope: &'static str, purpose: QuotaPurpose) -> Quota {
        Quota {
            quotas: self.clone(),
            credential: credential.clone(),
            scope,
            purpose,
        }
    }

    /// Ends a credential's quarantine, since the upstream accepts it again.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be kept.
    pub async fn restore(&self, credential: &Credential) -> Result<(), StoreError> {
        let key = credential.key();
        let restore = self.store.write(credential::root(key), move |tx| {
            credential::restore(tx, key)
        });
        restore.await.map(drop)
    }

    /// Quarantines a credential that the upstream rejects.
    async fn quarantine(&self, credential: &Credential, reason: &str) -> Result<(), StoreError> {
        tracing::warn!(
            credential = %credential.name,
            "the upstream rejects the credential; it is not used for an hour, or until `driftline credential test`: {reason}",
        );
        let (key, now) = (credential.key(), now_ms());
        let quarantine = Quarantine {
            since_ms: now,
            until_ms: now.saturating_add(Quarantine::MAX_MS),
            reason: reason.to_owned(),
        };
        self.store
            .write(credential::root(key), move |tx| {
                credential::quarantine(tx, key, &quarantine)
            })
            .await
    }
}

/// The ledger of a credential's posts in a month, under the current cap.
pub fn capped(mut ledger: QuotaLedger, cap: i64, now_ms: i64) -> QuotaLedger {
    let (ends_at_ms, length_ms) = month::of(now_ms);
    let cap = u32::try_from(cap).unwrap_or(u32::MAX);
    ledger.set_cap(cap, ends_at_ms, length_ms);
    ledger
}

/// The scope of the cap on posts read in a month.
pub const MONTH: &str = "posts a month";

#[cfg(test)]
mod tests;
