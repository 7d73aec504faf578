use driftline_store::Store;

use crate::{access::Access, pollers::Pollers, refresh::Refreshers};

/// Where commands are carried out: a store, and the parts that run beside it.
#[derive(Clone)]
pub struct Host {
    /// The store.
    pub store: Store,
    /// What reads sources in this process, if anything does.
    pub pollers: Option<Pollers>,
    /// What refreshes posts in this process, if anything does.
    pub refreshers: Option<Refreshers>,
    /// How this process reaches upstreams; without it no command can ask one.
    pub access: Option<Access>,
}

impl Host {
    /// A store that no other part of this process works with.
    pub fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            pollers: None,
            refreshers: None,
            access: None,
        }
    }
}
