//! State shared by every part of this process that sends requests to upstreams.

use driftline_net::Http;
use driftline_runtime::{IndexBacklog, StoreDisk, StoreFault};
use driftline_store::{Store, refresh::Claims, source::TokenLocation};
use driftline_upstream::Credential;

use crate::{
    cache_invalidations::CacheInvalidations,
    held_pages::HeldPages,
    look_up_abilities::LookUpAbilities,
    policies::Policies,
    quotas::Quotas,
    refresh::OutboxRelay,
    secrets::{Secrets, SecretsError},
};

/// How this process reaches upstreams and what it may request of them. Clones share all of it.
#[derive(Clone)]
pub struct UpstreamAccess {
    /// The HTTP client.
    pub http: Http,
    /// Whether sources of accounts may be in private networks, where those of the operator may.
    pub accounts_reach_private: bool,
    /// Reads tokens.
    pub secrets: Secrets,
    /// The quotas of credentials.
    pub quotas: Quotas,
    /// When posts are due to be refreshed.
    pub policies: Policies,
    /// The claims of this process's workers.
    pub claims: Claims,
    /// Whether the last content of a deleted post is kept in its history, whether a poll, a stream or
    /// a refresh finds the deletion.
    pub keep_deleted: bool,
    /// Whether look-ups find live posts, by credential.
    pub look_up_abilities: LookUpAbilities,
    /// Counts look-ups that invalidate what sessions remember of posts.
    pub cache_invalidations: CacheInvalidations,
    /// The memory of pages that sessions hold.
    pub held_pages: HeldPages,
    /// Outages of the store.
    pub store_fault: StoreFault,
    /// Whether there is room for what would be fetched.
    pub store_disk: StoreDisk,
    /// The posts that wait for the search index.
    pub index_backlog: IndexBacklog,
    /// Notifies libraries of what refreshes changed.
    pub outbox_relay: OutboxRelay,
    /// Whether this process refreshes stored posts, so that later looks need not find their edits and
    /// deletions.
    pub refreshes: bool,
}

impl UpstreamAccess {
    /// Access with the default policy and quotas, for credentials that are not sealed.
    pub fn new(store: &Store, http: Http) -> Self {
        Self {
            http,
            accounts_reach_private: false,
            secrets: Secrets::default(),
            quotas: Quotas::new(store.clone(), POLLING_SHARE),
            policies: Policies::default(),
            claims: Claims::default(),
            keep_deleted: true,
            look_up_abilities: LookUpAbilities::default(),
            cache_invalidations: CacheInvalidations::default(),
            held_pages: HeldPages::default(),
            store_fault: StoreFault::new(store.clone()),
            store_disk: StoreDisk::default(),
            index_backlog: IndexBacklog::default(),
            outbox_relay: OutboxRelay::new(store),
            refreshes: false,
        }
    }

    /// Reads a token for requests to this origin.
    ///
    /// # Errors
    /// [`SecretsError`]; it never holds the token.
    pub fn secret(
        &self,
        location: Option<&TokenLocation>,
        origin: &str,
    ) -> Result<Credential, SecretsError> {
        self.secrets.read(location, origin)
    }
}

/// The share of each quota that refreshing leaves to polling by default.
pub const POLLING_SHARE: f64 = 0.5;
