//! Invalidates what sessions remember of posts that look-ups could not find, so that polls that show
//! them are committed.

use std::{collections::HashMap, sync::Arc};

use driftline_store::InstanceId;
use parking_lot::Mutex;

/// How often this process's look-ups have left posts of each instance missing or failed: what a
/// session remembers of these posts is stale then. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct CacheInvalidations(Arc<Mutex<HashMap<InstanceId, u64>>>);

impl CacheInvalidations {
    /// Records that remembered posts of an instance are stale.
    pub(crate) fn raise(&self, instance: InstanceId) {
        *self.0.lock().entry(instance).or_default() += 1;
    }

    /// How often that was recorded.
    pub(crate) fn count(&self, instance: InstanceId) -> u64 {
        self.0.lock().get(&instance).copied().unwrap_or_default()
    }
}
