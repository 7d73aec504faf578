//! Threads: what a post replies to, and what replies to it.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use driftline_core::{api::Api, thread::ThreadLimits, upstream_id::UpstreamId};
use driftline_mastodon::RawObject;
use driftline_store::{
    InstanceId, LocalId, StoreError, Tx, instance,
    timeline::{self, Thread, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{local_references::LocalReferences, status::Shown};
use crate::{
    App,
    auth::{MayRead, needs},
    description::ids::StatusId,
    mastodon::{JSON, answer, entities::Context, timelines::unwanted::Unwanted, view::View},
    transport::{ApiError, PathId, Problem},
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
async fn context(
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let (viewer, id) = (caller.viewer(), LocalId::new(id));
    let now_ms = app.people.now_ms();
    let found = app.store.read(move |tx| wanted(tx, id, viewer, now_ms));
    if let Some(wanted) = found.await?.ok_or(ApiError::NotFound)? {
        // What came of it is in the store, or is not known now. For strangers nothing is asked of upstreams.
        let _ = app
            .mirror
            .fetch_thread(viewer, wanted.post, wanted.max_age_ms)
            .await;
    }
    let view = View::of(&app, viewer);
    let written = answer::read(&app, move |tx| {
        let Some((post, thread)) = read(tx, id, viewer)? else {
            return Ok(None);
        };
        let unwanted = Unwanted::load(tx, viewer, now_ms)?;
        write(tx, &post, &thread, &unwanted, &view).map(Some)
    });
    let body = written.await?.ok_or(ApiError::NotFound)?;
    Ok(([(CONTENT_TYPE, JSON)], body).into_response())
}

/// A post and its thread, as far as they are stored and the viewer may read them.
fn read(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<(TimelinePost, Thread)>, StoreError> {
    let Some(post) = timeline::status(tx, id, viewer)? else {
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
struct Wanted {
    post: (InstanceId, UpstreamId),
    max_age_ms: i64,
}

/// What to ask the upstream of a post for. It follows from what the viewer sees alone: what others have of the thread
/// changes nothing.
fn wanted(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
    now_ms: i64,
) -> Result<Option<Option<Wanted>>, StoreError> {
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
    Ok(Some(Some(Wanted {
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
    unwanted: &Unwanted,
    view: &View,
) -> Result<Vec<u8>, StoreError> {
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok(EMPTY.to_vec());
    };
    let is_wanted = |post: &&TimelinePost| !unwanted.has(post);
    let mut posts: Vec<&TimelinePost> = thread.ancestors.iter().filter(is_wanted).collect();
    let above = posts.len();
    posts.extend(thread.descendants.iter().filter(is_wanted));
    let shown: Vec<Shown> = posts
        .iter()
        .map(|post| Shown::status(post, &instance))
        .collect();
    let readable = ReadableSources::ask(tx, view.viewer)?;
    let references = LocalReferences::ask(tx, &shown)?;
    let overlays = view.ask(tx, &shown)?;
    let readable = readable.read(tx)?;
    let mut local = references.read(tx, &readable)?;
    // Each names the others by the IDs that they have in this answer, and the post as it was asked for.
    let all = thread.ancestors.iter().chain(&thread.descendants);
    let ids: HashMap<String, LocalId> = all
        .chain([post])
        .map(|post| (post.upstream_id.clone(), post.id))
        .collect();
    local.name_posts(instance.id, ids);
    let overlays = view.overlays(tx, overlays, (&posts, &shown), &local, &readable)?;
    let (ancestors, descendants) = shown.split_at(above);
    let mut body = br#"{"ancestors":"#.to_vec();
    body.extend(Shown::list(ancestors, &local, overlays.as_ref()));
    body.extend(br#","descendants":"#);
    body.extend(Shown::list(descendants, &local, overlays.as_ref()));
    body.push(b'}');
    Ok(body)
}

const DAY_MS: i64 = 86_400_000;
/// How old what is known of a thread may be that is young, or lacks posts.
const YOUNG_MS: i64 = 60_000;
/// How old what is known of any other may be.
const OLD_MS: i64 = 3_600_000;
const EMPTY: &[u8] = br#"{"ancestors":[],"descendants":[]}"#;
