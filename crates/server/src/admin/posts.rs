//! Commands that show the state and the history of a post.

use std::sync::Arc;

use driftline_core::refresh::Policy;
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    LocalId, StoreError, Tx, Viewer, absence,
    export::{ExportPost, post},
    find, history, instance,
    refresh::{CountsAt, PendingPost, count_history, pending_post, refresh_state},
    seen_since, source,
};

use super::{
    ExplainPost, Host, LeftSource, PendingPostState, PendingState, PostHistory, PostRecord,
    PostState, ShowHistory, StoredPostState, Version, reason::reason,
};

/// The refresh state of a post, and the reason for its due time.
pub(super) async fn why(host: &Host, request: ExplainPost) -> Result<PostState, CommandError> {
    let now = now_ms();
    let (id, stored) = match found(host, &request.post).await {
        Ok(post) => post,
        // Its look-up may be pending.
        Err(unknown) => {
            let viewer = host.viewer;
            let pending = host
                .store
                .read(move |tx| pending_post(tx, &request.post, viewer))
                .await?;
            return pending
                .map(|pending| PostState::Pending(why_pending(pending, now)))
                .ok_or(unknown);
        }
    };
    let policy = policy_of(host, id).await?;
    let viewer = host.viewer;
    let (state, counts, left) = host
        .store
        .read(move |tx| {
            let (state, counts) = (refresh_state(tx, id)?, count_history(tx, id, viewer)?);
            Ok::<_, StoreError>((state, counts, left(tx, id, viewer)?))
        })
        .await?;
    let why = reason(stored.deleted_at_ms, state.as_ref(), &policy, now);
    let freshness = state.map(|state| state.freshness);
    Ok(PostState::Stored(Box::new(StoredPostState {
        id,
        upstream_id: stored.upstream_id,
        url: stored.url,
        created_at_ms: stored.created_at_ms,
        edited_at_ms: stored.edited_at_ms,
        deleted_at_ms: stored.deleted_at_ms,
        left,
        visibility: stored.visibility,
        due_at_ms: state.and_then(|state| state.due_at_ms),
        why,
        refreshed_at_ms: freshness.map(|f| f.refreshed_ms),
        refreshes: freshness.map(|f| f.refreshes),
        failures: freshness.map(|f| f.failures),
        outcome: state.and_then(|state| state.outcome),
        counts: freshness.map(|f| f.counts),
        history: counts,
    })))
}

/// The sources that list a post no more, of those that a viewer may read.
fn left(tx: &mut Tx<'_>, post: LocalId, viewer: Viewer) -> Result<Vec<LeftSource>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(Vec::new());
    };
    let mut left = Vec::new();
    let readable = source::readable(tx, viewer)?;
    for (id, at_ms) in absence::left(tx, instance, post)? {
        if let Some(source) = readable.iter().find(|source| source.id == id) {
            let source = source.name.clone();
            left.push(LeftSource { source, at_ms });
        }
    }
    Ok(left)
}

/// The state of a tracked post that is not stored yet.
fn why_pending(pending: PendingPost, now_ms: i64) -> PendingPostState {
    let state = &pending.refresh_state;
    let (freshness, due_at_ms) = (&state.freshness, state.due_at_ms);
    let late_s = due_at_ms.map_or(0, |due_ms| now_ms.saturating_sub(due_ms).max(0) / 1000);
    let why = match freshness.failures {
        _ if !pending.waits => "its look-up found nothing: the post is gone, or hidden from these credentials; it is not looked up again".to_owned(),
        _ if freshness.missing => "the last answer left it out; it is looked up once more before it counts as missing".to_owned(),
        0 => format!("its first look-up is pending; it has been due for {late_s} s"),
        failures => format!(
            "its last {failures} look-ups failed, so it waits longer each time"
        ),
    };
    PendingPostState {
        id: (),
        upstream_id: pending.upstream_id,
        instance: pending.origin,
        state: if pending.waits {
            PendingState::Waiting
        } else {
            PendingState::Missing
        },
        named_at_ms: freshness.first_ms,
        due_at_ms,
        failures: freshness.failures,
        outcome: state.outcome,
        why,
    }
}

/// A post's counts over time, its edits and its deletion.
pub(super) async fn history(
    host: &Host,
    request: ShowHistory,
) -> Result<PostHistory, CommandError> {
    let viewer = host.viewer;
    let (id, stored) = found(host, &request.post).await?;
    let (mut counts, versions, state, since_ms) = host
        .store
        .read(move |tx| {
            Ok::<_, StoreError>((
                count_history(tx, id, viewer)?,
                history::versions(tx, id, viewer)?,
                refresh_state(tx, id)?,
                seen_since(tx, id, viewer)?,
            ))
        })
        .await?;
    if let (true, Some(state)) = (counts.is_empty(), state) {
        counts.push(CountsAt {
            at_ms: state.freshness.first_ms.max(since_ms.unwrap_or(i64::MIN)),
            counts: state.freshness.counts,
        });
    }
    Ok(PostHistory {
        id,
        upstream_id: stored.upstream_id,
        counts,
        versions: versions.into_iter().map(version).collect(),
        refreshed_at_ms: state.map(|state| state.freshness.refreshed_ms),
        outcome: state.and_then(|state| state.outcome),
        deleted_at_ms: stored.deleted_at_ms,
    })
}

async fn policy_of(host: &Host, post: LocalId) -> Result<Arc<Policy>, CommandError> {
    let instance = host.store.read(move |tx| instance::of_post(tx, post));
    let (Some(access), Some(instance)) = (&host.access, instance.await?) else {
        return Ok(Arc::default());
    };
    access.policies.load(&host.store, instance).await?;
    Ok(access.policies.of(instance))
}

async fn found(host: &Host, name: &str) -> Result<(LocalId, ExportPost), CommandError> {
    let (name_owned, viewer) = (name.to_owned(), host.viewer);
    let found = host
        .store
        .read(move |tx| {
            // What only private sources of others have is as if it were not there.
            let Some(id) = find::shown_post(tx, &name_owned, viewer)? else {
                return Ok(None);
            };
            Ok::<_, StoreError>(post(tx, id, viewer)?.map(|stored| (id, stored)))
        })
        .await?;
    found.ok_or_else(|| {
        CommandError::usage(format!(
            "no stored post is called {name:?}; name it by its ID here, its address, or as INSTANCE/ID with its ID there"
        ))
    })
}

fn version(version: history::Version) -> Version {
    Version {
        until_ms: version.at_ms,
        ended_by: version.ended_by,
        status: PostRecord::status(version.raw),
    }
}
