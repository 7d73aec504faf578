//! What the API needs from the part of the program that reads upstreams. The server wires it, so that
//! the API knows no upstream.

use driftline_core::tracking::{Track, TrackResult, TrackedPosts};
use driftline_runtime::{CommandError, FailingSource, LowDisk, StalledSource};
use futures_util::future::BoxFuture;

/// The mirror as requests see it.
pub trait MirrorPort: Send + Sync {
    /// Stores posts' IDs durably for look-ups.
    fn track(&self, track: Track) -> BoxFuture<'_, Result<TrackResult, CommandError>>;

    /// The tracked posts of an instance, counted by state.
    fn tracked_posts(&self, instance: String) -> BoxFuture<'_, Result<TrackedPosts, CommandError>>;

    /// The sources that are not read at this time, Unix ms, by name.
    fn stalled_sources(&self, now_ms: i64) -> Vec<StalledSource>;

    /// The sources whose requests have failed for a while at this time, Unix ms, by name.
    fn failing_sources(&self, now_ms: i64) -> Vec<FailingSource>;

    /// Why nothing is fetched for want of room on the disk; `None` while there is room.
    fn low_disk(&self) -> Option<LowDisk>;

    /// The error of a store that fails every commit of a source.
    fn store_fault(&self) -> Option<String>;
}
