use driftline_store::Store;

use driftline_mirror::{Pollers, UpstreamAccess, refresh::Refreshers};

/// Where commands are executed: a store, and the parts of the process that run next to it.
#[derive(Clone)]
pub struct Host {
    /// The store.
    pub store: Store,
    /// The pollers, if this process reads sources.
    pub pollers: Option<Pollers>,
    /// The refreshers, if this process refreshes posts.
    pub refreshers: Option<Refreshers>,
    /// How this process reaches upstreams; without it no command can send requests.
    pub access: Option<UpstreamAccess>,
}

impl Host {
    /// A store alone, without other parts of the process.
    pub fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            pollers: None,
            refreshers: None,
            access: None,
        }
    }
}
