//! What the API needs from the part of the program that reads upstreams. The server wires it, so that
//! the API knows no upstream.

use driftline_core::{
    thread::Fetched,
    tracking::{Track, TrackResult, TrackedPosts},
    upstream_id::UpstreamId,
};
use driftline_runtime::{CommandError, FailingSource, LowDisk, StalledSource};
use driftline_store::{InstanceId, LocalAccountId, Viewer};
use futures_util::future::BoxFuture;

use crate::native::sources::{NewOwnSource, OwnSource, OwnSourceChange, OwnSourceId};

/// The mirror as requests see it.
pub trait MirrorPort: Send + Sync {
    /// Stores posts' IDs durably for look-ups.
    fn track(&self, track: Track) -> BoxFuture<'_, Result<TrackResult, CommandError>>;

    /// The tracked posts of an instance, counted by state.
    fn tracked_posts(&self, instance: String) -> BoxFuture<'_, Result<TrackedPosts, CommandError>>;

    /// An account's own sources.
    fn own_sources(
        &self,
        account: LocalAccountId,
    ) -> BoxFuture<'_, Result<Vec<OwnSource>, CommandError>>;

    /// Adds a source for an account.
    fn add_own_source(
        &self,
        account: LocalAccountId,
        new: NewOwnSource,
    ) -> BoxFuture<'_, Result<OwnSource, CommandError>>;

    /// Changes a source of an account; `None` if it has no such source.
    fn change_own_source(
        &self,
        account: LocalAccountId,
        source: OwnSourceId,
        change: OwnSourceChange,
    ) -> BoxFuture<'_, Result<Option<OwnSource>, CommandError>>;

    /// Removes a source of an account; `false` if it has no such source.
    fn remove_own_source(
        &self,
        account: LocalAccountId,
        source: OwnSourceId,
    ) -> BoxFuture<'_, Result<bool, CommandError>>;

    /// Fetches what an upstream shows a viewer of the thread of a post, if what is known of it may be older than so
    /// many ms; waits for it for a short while.
    fn fetch_thread(
        &self,
        viewer: Viewer,
        post: (InstanceId, UpstreamId),
        max_age_ms: i64,
    ) -> BoxFuture<'_, Fetched>;

    /// Fetches the post of an address for a viewer who has an account, from where that viewer's own sources or those
    /// for the world are; waits for it for a short while.
    fn fetch_post_at(&self, viewer: Viewer, address: String) -> BoxFuture<'_, Fetched>;

    /// Fetches the account of a name with a host for a viewer who has an account, from where that viewer's own sources
    /// or those for the world are; waits for it for a short while.
    fn fetch_account(&self, viewer: Viewer, name: String) -> BoxFuture<'_, Fetched>;

    /// The sources that are not read at this time, Unix ms, by name.
    fn stalled_sources(&self, now_ms: i64) -> Vec<StalledSource>;

    /// The sources whose requests have failed for a while at this time, Unix ms, by name.
    fn failing_sources(&self, now_ms: i64) -> Vec<FailingSource>;

    /// Why nothing is fetched for want of room on the disk; `None` while there is room.
    fn low_disk(&self) -> Option<LowDisk>;

    /// The error of a store that fails every commit of a source.
    fn store_fault(&self) -> Option<String>;
}
