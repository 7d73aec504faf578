use std::time::Duration;

use driftline_store::InstanceId;

use crate::sharing::Sharing;

/// How posts are refreshed.
#[derive(Clone)]
pub struct RefreshOptions {
    /// This process's name on its leases: unique among the processes that share a store.
    pub holder: String,
    /// How long an incomplete batch waits for more posts, from when its first post was due.
    pub buffer_ttl: Duration,
    /// How long a claim lasts. A dead worker delays its posts by this long; a look-up may take two
    /// thirds of it.
    pub lease: Duration,
    /// Look-ups of one instance at a time.
    pub workers: usize,
    /// The names of the credentials that posts are refreshed with; empty for all.
    pub credentials: Vec<String>,
    /// The only instance whose posts are refreshed; all are without one.
    pub only: Option<InstanceId>,
    /// This process's part in the shared work; without it, it looks at every bucket.
    pub sharing: Option<Sharing>,
    /// How often to scan for new instances, and to export how far behind all are.
    pub scan: Duration,
}

impl RefreshOptions {
    /// The default options, for a process of that name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            buffer_ttl: Duration::from_secs(2),
            lease: Duration::from_secs(30),
            workers: 2,
            credentials: Vec::new(),
            only: None,
            sharing: None,
            scan: Duration::from_secs(2),
        }
    }
}
