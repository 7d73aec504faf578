use std::sync::Arc;

use driftline_api::{auth::CallerCache, feed::Feed, transport::Address};
use driftline_core::social::AccountName;
use driftline_id_service::Issuer;
use driftline_mirror::{Pollers, UpstreamAccess, refresh::Refreshers};
use driftline_runtime::{CommandError, StoreDisk, now_ms};
use driftline_store::{Store, Viewer};

use super::{ProcessStatus, accounts};

/// Where commands are executed: a store, and the parts of the process that run next to it.
#[derive(Clone)]
pub struct Host {
    /// The store.
    pub store: Store,
    /// What changes in it.
    pub feed: Feed,
    /// The callers of its API that were read lately.
    pub callers: CallerCache,
    /// The pollers, if this process reads sources.
    pub pollers: Option<Pollers>,
    /// The refreshers, if this process refreshes posts.
    pub refreshers: Option<Refreshers>,
    /// How this process reaches upstreams; without it no command can send requests.
    pub access: Option<UpstreamAccess>,
    /// Whether this process has room for what it would fetch.
    pub store_disk: StoreDisk,
    /// What issues IDs, if this process serves them.
    pub ids: Option<Arc<Issuer>>,
    /// This process, if it goes on after the command.
    pub process: Option<ProcessStatus>,
    /// How many sources of its own an account may have.
    pub sources_per_account: u32,
    /// The address of this server.
    pub address: Address,
    /// As whom commands are executed: what this viewer may not see is left out.
    pub viewer: Viewer,
    /// The account's name, if that is one.
    pub account: Option<AccountName>,
}

impl Host {
    /// A store alone, without other parts of the process.
    pub fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            feed: Feed::new(store.clone()),
            callers: CallerCache::default(),
            pollers: None,
            refreshers: None,
            access: None,
            store_disk: StoreDisk::default(),
            ids: None,
            process: None,
            sources_per_account: DEFAULT_SOURCES_PER_ACCOUNT,
            address: Address::local(),
            viewer: Viewer::Operator,
            account: None,
        }
    }

    /// The same for commands that are executed as an account; of `None` as the operator.
    ///
    /// # Errors
    /// [`CommandError`] if there is no such account.
    pub async fn acting_as(self, account: Option<&AccountName>) -> Result<Self, CommandError> {
        let Some(name) = account else {
            return Ok(self);
        };
        let account = accounts::find(&self.store, name).await?;
        Ok(Self {
            viewer: Viewer::Account(account.id),
            account: Some(account.name),
            ..self
        })
    }
}

/// How many sources of its own an account may have where nothing else is configured.
pub const DEFAULT_SOURCES_PER_ACCOUNT: u32 = 10;

impl ProcessStatus {
    /// This process, which was started now with that command.
    pub fn started(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since_ms: now_ms(),
            node: None,
        }
    }
}
