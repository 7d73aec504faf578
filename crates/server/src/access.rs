//! What every part of this process that asks upstreams shares.

use driftline_store::{Store, refresh::Claims, source::TokenLocation};
use driftline_upstream::{Credential, Http};

use crate::{
    cache_invalidations::CacheInvalidations,
    policies::Policies,
    quotas::Quotas,
    refresh::OutboxRelay,
    secrets::{Secrets, SecretsError},
    store_fault::StoreFault,
};

/// How this process reaches upstreams and what it may ask of them. Clones share it all.
#[derive(Clone)]
pub struct Access {
    /// Connections.
    pub http: Http,
    /// Where tokens are read.
    pub secrets: Secrets,
    /// What may still be asked.
    pub quotas: Quotas,
    /// When posts are due to be refreshed, from the moment they are stored.
    pub policies: Policies,
    /// What this process's workers look up.
    pub claims: Claims,
    /// Whether what a deleted post held is kept in its history, whoever finds its deletion.
    pub keep_deleted: bool,
    /// Which upstreams' posts look-ups could not find.
    pub cache_invalidations: CacheInvalidations,
    /// Whether the store fails.
    pub store_fault: StoreFault,
    /// Tells libraries what refreshes changed.
    pub outbox_relay: OutboxRelay,
    /// Whether this process refreshes stored posts, so that no later look has to find their edits
    /// and deletions.
    pub refreshes: bool,
}

impl Access {
    /// Access with the usual policy and quotas, for credentials that are not sealed.
    pub fn new(store: &Store, http: Http) -> Self {
        Self {
            http,
            secrets: Secrets::default(),
            quotas: Quotas::new(store.clone(), POLLING_SHARE),
            policies: Policies::default(),
            claims: Claims::default(),
            keep_deleted: true,
            cache_invalidations: CacheInvalidations::default(),
            store_fault: StoreFault::new(store.clone()),
            outbox_relay: OutboxRelay::new(store),
            refreshes: false,
        }
    }

    pub(crate) fn secret(
        &self,
        place: Option<&TokenLocation>,
        origin: &str,
    ) -> Result<Credential, SecretsError> {
        self.secrets.read(place, origin)
    }
}

/// The share of each quota that refreshing usually leaves to polling.
pub const POLLING_SHARE: f64 = 0.5;
