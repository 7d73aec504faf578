//! Reads again what an earlier version of the program could not read.

use driftline_core::timeline::IdScheme;
use driftline_runtime::now_ms;
use driftline_store::{
    CommitRetried, CommitSummary, Store, StoreError, commit_retried,
    quarantine::{self, Quarantined},
    source::{self, Source},
};
use driftline_upstream::{Timeline, Upstream};

use crate::{commit_metrics::count, upstream_access::UpstreamAccess};

/// Reads the items that a source has in quarantine, each once with each version of the program, and
/// stores the posts that it can read now.
pub(crate) async fn retry(
    store: &Store,
    access: &UpstreamAccess,
    source: &Source,
    fence: Option<i64>,
    (client, timeline): (&Upstream, &Timeline),
    scheme: IdScheme,
) -> Result<(), StoreError> {
    let key = source.key();
    loop {
        let untried = store.read(move |tx| quarantine::untried(tx, key)).await?;
        if untried.is_empty() {
            return Ok(());
        }
        let reader = (client, timeline);
        portion(store, access, source, fence, reader, scheme, untried).await?;
    }
}

async fn portion(
    store: &Store,
    access: &UpstreamAccess,
    source: &Source,
    fence: Option<i64>,
    (client, timeline): (&Upstream, &Timeline),
    scheme: IdScheme,
    untried: Vec<Quarantined>,
) -> Result<(), StoreError> {
    let key = source.key();
    let read = untried.into_iter().map(|quarantined| {
        let read = client.read_item(timeline, &quarantined.item.bytes);
        (quarantined, read)
    });
    let items: Vec<_> = read.collect();
    let tried = items.len();
    let policy = access.policies.of(source.instance.id);
    let summary: CommitSummary = store
        .write(source::root(key), move |tx| {
            commit_retried(
                tx,
                &CommitRetried {
                    source: key,
                    fence,
                    scheme: &scheme,
                    items: &items,
                    policy: &policy,
                    now_ms: now_ms(),
                },
            )
        })
        .await?;
    count(&summary);
    tracing::info!(
        source = %source.name, tried, stored = summary.new,
        "items that an earlier version could not read were read again"
    );
    Ok(())
}
