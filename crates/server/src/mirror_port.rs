use std::time::Duration;

use driftline_api::{
    MirrorPort,
    sources::{NewOwnSource, OwnSource, OwnSourceChange, OwnSourceId},
};
use driftline_core::{
    thread::Fetched,
    tracking::{Track, TrackResult, TrackedPosts},
    upstream_id::UpstreamId,
};
use driftline_mirror::{Policies, ShownThread, SourceHealth, Threads, track, tracked_posts};
use driftline_runtime::{CommandError, FailingSource, LowDisk, StalledSource, StoreDisk};
use driftline_store::{InstanceId, LocalAccountId, Store, Viewer};
use futures_util::future::BoxFuture;

use crate::admin::{Host, own_sources};

/// What the HTTP API needs from the mirror of the same process.
#[derive(Clone)]
pub struct LocalMirror {
    /// Where posts are stored.
    pub store: Store,
    /// Where accounts' commands on their own sources are executed.
    pub host: Host,
    /// When tracked posts are due to be refreshed.
    pub policies: Policies,
    /// The health of the sources that this process reads.
    pub sources: SourceHealth,
    /// Whether there is room for what would be fetched.
    pub store_disk: StoreDisk,
    /// Fetches threads, posts by their addresses and accounts by their names; `None` where upstreams are out of reach.
    pub threads: Option<Threads>,
}

impl MirrorPort for LocalMirror {
    fn track(&self, request: Track) -> BoxFuture<'_, Result<TrackResult, CommandError>> {
        Box::pin(track(&self.store, &self.policies, request, false))
    }

    fn tracked_posts(&self, instance: String) -> BoxFuture<'_, Result<TrackedPosts, CommandError>> {
        Box::pin(async move { tracked_posts(&self.store, &instance).await })
    }

    fn own_sources(
        &self,
        account: LocalAccountId,
    ) -> BoxFuture<'_, Result<Vec<OwnSource>, CommandError>> {
        Box::pin(own_sources::list(&self.host, account))
    }

    fn add_own_source(
        &self,
        account: LocalAccountId,
        new: NewOwnSource,
    ) -> BoxFuture<'_, Result<OwnSource, CommandError>> {
        Box::pin(own_sources::add(&self.host, account, new))
    }

    fn change_own_source(
        &self,
        account: LocalAccountId,
        source: OwnSourceId,
        change: OwnSourceChange,
    ) -> BoxFuture<'_, Result<Option<OwnSource>, CommandError>> {
        Box::pin(own_sources::change(&self.host, account, source, change))
    }

    fn remove_own_source(
        &self,
        account: LocalAccountId,
        source: OwnSourceId,
    ) -> BoxFuture<'_, Result<bool, CommandError>> {
        Box::pin(own_sources::remove(&self.host, account, source))
    }

    fn fetch_thread(
        &self,
        viewer: Viewer,
        (instance, post): (InstanceId, UpstreamId),
        max_age_ms: i64,
    ) -> BoxFuture<'_, Fetched> {
        Box::pin(async move {
            let Some(threads) = &self.threads else {
                return Fetched::NotNow;
            };
            let shown = ShownThread {
                viewer,
                instance,
                post,
                max_age_ms,
            };
            threads.fetch(shown, MAX_WAIT).await
        })
    }

    fn fetch_post_at(&self, viewer: Viewer, address: String) -> BoxFuture<'_, Fetched> {
        Box::pin(async move {
            let Some(threads) = &self.threads else {
                return Fetched::NotNow;
            };
            threads.fetch_post_at(viewer, &address, MAX_WAIT).await
        })
    }

    fn fetch_account(&self, viewer: Viewer, name: String) -> BoxFuture<'_, Fetched> {
        Box::pin(async move {
            let Some(threads) = &self.threads else {
                return Fetched::NotNow;
            };
            threads.fetch_account(viewer, &name, MAX_WAIT).await
        })
    }

    fn stalled_sources(&self, now_ms: i64) -> Vec<StalledSource> {
        self.sources.stalled_sources(now_ms)
    }

    fn failing_sources(&self, now_ms: i64) -> Vec<FailingSource> {
        self.sources.failing_sources(now_ms)
    }

    fn low_disk(&self) -> Option<LowDisk> {
        self.store_disk.low()
    }

    fn store_fault(&self) -> Option<String> {
        self.sources.store_fails()
    }
}

/// How long whoever looks at a thread, or searches an address or a name, waits for what its server has.
const MAX_WAIT: Duration = Duration::from_secs(2);
