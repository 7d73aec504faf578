//! Threads: what a post replies to, and what replies to it.

use std::{collections::HashMap, sync::Arc};

use driftline_core::{api::Api, thread::ThreadLimits, upstream_id::UpstreamId};
use driftline_mastodon::RawObject;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx, instance,
    social::list_entry,
    timeline::{self, Thread, TimelinePost, Viewer},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::entity_template::EntityTemplate;
use crate::{
    App,
    auth::{MayRead, needs},
    description::ids::StatusId,
    mastodon::{answer, entities::Context, timelines::hidden_posts::HiddenPosts, view::View},
    transport::{ApiError, ApiResult, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(context))
}

/// The thread of a status: what it replies to, and what replies to it.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/context", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = Context), (status = 404, body = Problem, description = "It is unknown, or not for the caller")),
)]
async fn context(reader: MayRead<needs::ReadStatuses>, PathId(id): PathId) -> ApiResult {
    let (viewer, now_ms, id) = (reader.viewer, reader.now_ms(), LocalId::new(id));
    let found = reader.read(move |tx| pending_fetch(tx, id, viewer, now_ms));
    if let Some(pending) = found.await?.ok_or(ApiError::NotFound)? {
        // What came of it is in the store, or is not known now. For strangers nothing is asked of upstreams.
        let mirror = &reader.app.mirror;
        let fetched = mirror.fetch_thread(viewer, pending.post, pending.max_age_ms);
        let _ = fetched.await;
    }
    let view = View::new(&reader);
    let written = reader.read(move |tx| {
        let Some((post, thread)) = read(tx, id, viewer)? else {
            return Ok(None);
        };
        let hidden = view.hidden(tx)?.read(tx)?;
        write(tx, &post, &thread, &hidden, &view).map(Some)
    });
    let body = written.await?.ok_or(ApiError::NotFound)?;
    Ok(answer::written(body))
}

/// A post and its thread, as far as they are stored and the viewer may read them.
fn read(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<(TimelinePost, Thread)>, StoreError> {
    let Some(post) = list_entry::status(tx, id, viewer)? else {
        return Ok(None);
    };
    let limits = match viewer {
        Viewer::Anonymous => ThreadLimits::STRANGER,
        Viewer::Account(_) | Viewer::Operator => ThreadLimits::ACCOUNT,
    };
    let thread = timeline::thread(tx, &post, viewer, limits, &reply_to)?;
    Ok(Some((post, thread)))
}

/// What to ask an upstream for.
struct PendingFetch {
    post: (InstanceId, UpstreamId),
    max_age_ms: i64,
}

/// What to ask the upstream of a post for. It follows from what the viewer sees alone: what others have of the thread
/// changes nothing.
fn pending_fetch(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
    now_ms: i64,
) -> Result<Option<Option<PendingFetch>>, StoreError> {
    let Some((post, thread)) = read(tx, id, viewer)? else {
        return Ok(None);
    };
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok(Some(None));
    };
    if instance.api != Api::Mastodon {
        return Ok(Some(None));
    }
    let is_young = post
        .created_at_ms
        .is_none_or(|at_ms| now_ms - at_ms < DAY_MS);
    let max_age_ms = match is_young || lacks(&post, &thread) {
        true => YOUNG_MS,
        false => OLD_MS,
    };
    Ok(Some(Some(PendingFetch {
        post: (post.instance, UpstreamId::new(post.upstream_id)),
        max_age_ms,
    })))
}

/// Whether posts of a thread are missing, by what its posts say.
fn lacks(post: &TimelinePost, thread: &Thread) -> bool {
    let top = thread.ancestors.first().unwrap_or(post);
    if reply_to(top).is_some() {
        return true;
    }
    let mut found: HashMap<String, i64> = HashMap::new();
    for reply in thread.descendants.iter().filter_map(reply_to) {
        *found.entry(reply).or_default() += 1;
    }
    let all = thread.descendants.iter().chain([post]);
    let mut missing = all.filter(|post| {
        let members = RawObject::parse(&post.raw).ok();
        let replies = members.and_then(|post| post.whole("replies_count"));
        let found = found.get(&post.upstream_id).copied();
        replies.unwrap_or_default() > found.unwrap_or_default()
    });
    missing.next().is_some()
}

/// What a post replies to, by its ID at the upstream.
fn reply_to(post: &TimelinePost) -> Option<String> {
    let members = RawObject::parse(&post.raw).ok()?;
    Some(members.id("in_reply_to_id")?.into_owned())
}

/// The entity `Context`.
fn write(
    tx: &mut Tx<'_>,
    post: &TimelinePost,
    thread: &Thread,
    hidden: &HiddenPosts,
    view: &View,
) -> Result<Vec<u8>, StoreError> {
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok(EMPTY.to_vec());
    };
    let is_shown = |post: &&TimelinePost| !hidden.has(post);
    let mut posts: Vec<&TimelinePost> = thread.ancestors.iter().filter(is_shown).collect();
    let above = posts.len();
    posts.extend(thread.descendants.iter().filter(is_shown));
    let shown: Vec<EntityTemplate> = posts
        .iter()
        .map(|post| EntityTemplate::status(post, &instance, &view.address))
        .collect();
    // Each names the others by the IDs that they have in this answer, and the post as it was asked for.
    let all = thread.ancestors.iter().chain(&thread.descendants);
    let ids: HashMap<String, LocalId> = all
        .chain([post])
        .map(|post| (post.upstream_id.clone(), post.id))
        .collect();
    let named = HashMap::from([(instance.id, ids)]);
    view.write(tx, &posts, &shown, named, |local, overlays| {
        let (ancestors, descendants) = shown.split_at(above);
        let mut body = br#"{"ancestors":"#.to_vec();
        body.extend(EntityTemplate::list(ancestors, local, overlays));
        body.extend(br#","descendants":"#);
        body.extend(EntityTemplate::list(descendants, local, overlays));
        body.push(b'}');
        body
    })
}

const DAY_MS: i64 = 86_400_000;
/// How old what is known of a thread may be that is young, or lacks posts.
const YOUNG_MS: i64 = 60_000;
/// How old what is known of any other may be.
const OLD_MS: i64 = 3_600_000;
const EMPTY: &[u8] = br#"{"ancestors":[],"descendants":[]}"#;
