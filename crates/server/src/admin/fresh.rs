//! Commands about the freshness of posts.

use std::sync::Arc;

use driftline_core::{
    post::Counts,
    refresh::{AgeTable, LookupOutcome, Policy},
};
use driftline_mastodon::viewer;
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    LocalId, Store, StoreError,
    export::{ExportPost, post},
    find,
    history::{self, EndedBy, Version},
    refresh::{CountsAt, PendingPost, bands, count_history, overdue, pending_post, refresh_state},
    source,
};
use serde_json::{Value, json};

use super::{Host, credentials, reason::reason};
use driftline_mirror::{
    UpstreamAccess,
    refresh::{ConfiguredCredentials, RefreshStats},
};

/// The state of refreshing.
pub(super) async fn status(host: &Host) -> Result<Value, CommandError> {
    let now = now_ms();
    let table = host
        .access
        .as_ref()
        .map_or_else(AgeTable::default, |access| access.policies.ages().clone());
    let ages = table.clone();
    let states = host
        .store
        .read(move |tx| {
            let mut states = Vec::new();
            for instance in source::instances(tx)? {
                let behind = overdue(tx, instance.id, now)?;
                let aged = bands(tx, instance.id, &ages, now)?;
                states.push((instance, behind, aged));
            }
            Ok::<_, StoreError>(states)
        })
        .await?;
    let by_value = |access: &UpstreamAccess| access.policies.plan().by_value.is_some();
    let policy = match &host.access {
        Some(access) if by_value(access) => "value",
        _ => "age",
    };
    let configured = match &host.refreshers {
        Some(refreshers) => refreshers.configured_credentials().await?,
        None => ConfiguredCredentials::default(),
    };
    let since_ms = |first_ms: Option<i64>| {
        let first_ms = first_ms.unwrap_or(now);
        now.saturating_sub(first_ms).max(0)
    };
    let instances: Vec<Value> = states
        .into_iter()
        .map(|(instance, behind, aged)| {
            let refresh_stats = host
                .refreshers
                .as_ref()
                .map(|refreshers| refreshers.refresh_stats(instance.id));
            let bands: Vec<Value> = table
                .bands()
                .iter()
                .zip(aged)
                .map(|(band, state)| {
                    json!({
                        "below_ms": band.below_ms,
                        "every_ms": band.every_ms,
                        "posts": state.posts,
                        "overdue": state.overdue,
                        "mean_staleness_ms": state.mean_staleness_ms,
                        "max_staleness_ms": state.max_staleness_ms,
                    })
                })
                .collect();
            json!({
                "instance": instance.origin,
                "scheduled": behind.scheduled,
                "overdue": behind.overdue,
                "oldest_overdue_ms": since_ms(behind.first_due_ms),
                "pending_lookups": behind.pending_lookups,
                "oldest_pending_ms": since_ms(behind.first_pending_ms),
                "leased": behind.leased,
                "bands": bands,
                "mean_posts_a_request": refresh_stats.as_ref().and_then(RefreshStats::mean_posts),
                "since_start": refresh_stats,
                "policy": policy,
                "without_credential": configured.leaves_out(instance.id),
            })
        })
        .collect();
    Ok(json!({
        "instances": instances,
        "credentials": credentials::list(host).await?,
        "unknown_credentials": configured.unknown(),
        "running": host.refreshers.is_some(),
    }))
}

/// The refresh state of a post, and the reason for its due time.
pub(super) async fn why(host: &Host, name: &str) -> Result<Value, CommandError> {
    let now = now_ms();
    let post = match found(&host.store, name).await {
        Ok(post) => post,
        // Its look-up may be pending.
        Err(unknown) => {
            let text = name.to_owned();
            let pending = host.store.read(move |tx| pending_post(tx, &text)).await?;
            return pending
                .map(|pending| why_pending(&pending, now))
                .ok_or(unknown);
        }
    };
    let policy = policy_of(host, post.0).await?;
    let (stored, state, counts) = host
        .store
        .read(move |tx| {
            let (id, stored) = (post.0, post.1.clone());
            Ok::<_, StoreError>((stored, refresh_state(tx, id)?, count_history(tx, id)?))
        })
        .await?;
    let reason = reason(stored.deleted_at_ms, state.as_ref(), &policy, now);
    let freshness = state.map(|state| state.freshness);
    Ok(json!({
        "id": post_id(host, name).await?,
        "upstream_id": stored.upstream_id,
        "url": stored.url,
        "created_at_ms": stored.created_at_ms,
        "edited_at_ms": stored.edited_at_ms,
        "deleted_at_ms": stored.deleted_at_ms,
        "visibility": stored.visibility.name(),
        "due_at_ms": state.and_then(|state| state.due_at_ms),
        "why": reason,
        "refreshed_at_ms": freshness.map(|f| f.refreshed_ms),
        "refreshes": freshness.map(|f| f.refreshes),
        "failures": freshness.map(|f| f.failures),
        "outcome": state.and_then(|state| state.outcome).map(LookupOutcome::name),
        "counts": freshness.map(|f| counted(f.counts)),
        "history": counts.iter().map(at).collect::<Vec<_>>(),
    }))
}

/// The state of a tracked post that is not stored yet.
fn why_pending(pending: &PendingPost, now_ms: i64) -> Value {
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
    json!({
        "id": null,
        "upstream_id": pending.upstream_id,
        "instance": pending.origin,
        "state": if pending.waits { "waiting" } else { "missing" },
        "named_at_ms": freshness.first_ms,
        "due_at_ms": due_at_ms,
        "failures": freshness.failures,
        "outcome": state.outcome.map(LookupOutcome::name),
        "why": why,
    })
}

/// A post's counts over time, its edits and its deletion.
pub(super) async fn history(store: &Store, name: &str) -> Result<Value, CommandError> {
    let (id, stored) = found(store, name).await?;
    let (counts, versions, state) = store
        .read(move |tx| {
            Ok::<_, StoreError>((
                count_history(tx, id)?,
                history::versions(tx, id)?,
                refresh_state(tx, id)?,
            ))
        })
        .await?;
    let mut counts: Vec<Value> = counts.iter().map(at).collect();
    if let (true, Some(state)) = (counts.is_empty(), state) {
        let freshness = state.freshness;
        counts.push(at(&CountsAt {
            at_ms: freshness.first_ms,
            counts: freshness.counts,
        }));
    }
    Ok(json!({
        "id": id.to_string(),
        "upstream_id": stored.upstream_id,
        "counts": counts,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "refreshed_at_ms": state.map(|state| state.freshness.refreshed_ms),
        "outcome": state.and_then(|state| state.outcome).map(LookupOutcome::name),
        "deleted_at_ms": stored.deleted_at_ms,
    }))
}

async fn policy_of(host: &Host, post: LocalId) -> Result<Arc<Policy>, CommandError> {
    let Some(access) = &host.access else {
        return Ok(Arc::default());
    };
    let instance = host
        .store
        .read(move |tx| find::instance_of(tx, post))
        .await?;
    let Some(instance) = instance else {
        return Ok(Arc::default());
    };
    access.policies.load(&host.store, instance).await?;
    Ok(access.policies.of(instance))
}

async fn post_id(host: &Host, name: &str) -> Result<String, CommandError> {
    Ok(found(&host.store, name).await?.0.to_string())
}

async fn found(store: &Store, name: &str) -> Result<(LocalId, ExportPost), CommandError> {
    let name_owned = name.to_owned();
    let found = store
        .read(move |tx| {
            let Some(id) = find::post(tx, &name_owned)? else {
                return Ok(None);
            };
            Ok::<_, StoreError>(post(tx, id)?.map(|stored| (id, stored)))
        })
        .await?;
    found.ok_or_else(|| {
        CommandError::usage(format!(
            "no stored post is called {name:?}; name it by its ID here, its address, or as INSTANCE/ID with its ID there"
        ))
    })
}

fn at(row: &CountsAt) -> Value {
    let mut value = counted(row.counts);
    value["at_ms"] = row.at_ms.into();
    value
}

fn counted(counts: Counts) -> Value {
    json!({
        "replies": counts.replies,
        "boosts": counts.boosts,
        "favourites": counts.favourites,
        "quotes": counts.quotes,
        "views": counts.views,
    })
}

fn version(version: &Version) -> Value {
    json!({
        "until_ms": version.at_ms,
        "ended_by": match version.ended_by {
            EndedBy::Edit => "edit",
            EndedBy::Deletion => "deletion",
        },
        "status": serde_json::from_str::<Value>(&viewer::without(version.raw.clone())).ok(),
    })
}
