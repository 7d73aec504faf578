//! Which upstreams' posts look-ups could not find, so that polls that show them are committed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use driftline_store::InstanceId;

/// How often this process's look-ups have left posts of each instance missing or failed: what a
/// session remembers of such posts no longer holds. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CacheInvalidations(Arc<Mutex<HashMap<InstanceId, u64>>>);

impl CacheInvalidations {
    /// Tells that posts of an instance were left so.
    pub(crate) fn raise(&self, instance: InstanceId) {
        // A count is whole after each of its changes.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(instance).or_default() += 1;
    }

    /// How often that has been told.
    pub(crate) fn count(&self, instance: InstanceId) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&instance).copied().unwrap_or_default()
    }
}
