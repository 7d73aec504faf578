//! Threads: what a post replies to, and what replies to it.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use driftline_core::thread::ThreadLimits;
use driftline_mastodon::RawObject;
use driftline_store::{
    LocalId, StoreError, Tx, instance,
    timeline::{self, Thread, TimelinePost, Viewer},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    JSON, answer,
    entities::Context,
    local_references::{LocalReferences, Unmapped},
    status::Shown,
    unwanted::Unwanted,
    view::View,
};
use crate::{
    App,
    auth::{MayRead, needs},
    description::ids::StatusId,
    transport::{ApiError, PathId, Problem},
};

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
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
    let (view, now_ms) = (View::of(&app, viewer), app.people.now_ms());
    let written = answer::read(&app, move |tx| {
        let Some((post, thread)) = read(tx, id, viewer)? else {
            return Ok((None, Unmapped::new()));
        };
        let unwanted = Unwanted::load(tx, viewer, now_ms)?;
        let (body, unmapped) = write(tx, &post, &thread, &unwanted, &view)?;
        Ok((Some(body), unmapped))
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
) -> Result<(Vec<u8>, Unmapped), StoreError> {
    let Some(instance) = instance::by_id(tx, post.instance)? else {
        return Ok((EMPTY.to_vec(), Unmapped::new()));
    };
    let is_wanted = |post: &&TimelinePost| !unwanted.has(post);
    let mut posts: Vec<&TimelinePost> = thread.ancestors.iter().filter(is_wanted).collect();
    let above = posts.len();
    posts.extend(thread.descendants.iter().filter(is_wanted));
    let shown: Vec<Shown> = posts
        .iter()
        .map(|post| Shown::status(post, &instance))
        .collect();
    let (mut local, unmapped) = LocalReferences::find(tx, &shown, view.viewer)?;
    // Each names the others by the IDs that they have in this answer, and the post as it was asked for.
    let all = thread.ancestors.iter().chain(&thread.descendants);
    let ids: HashMap<String, LocalId> = all
        .chain([post])
        .map(|post| (post.upstream_id.clone(), post.id))
        .collect();
    local.name_posts(instance.id, ids);
    let overlays = view.overlays(tx, &posts, &shown, &local)?;
    let (ancestors, descendants) = shown.split_at(above);
    let mut body = br#"{"ancestors":"#.to_vec();
    body.extend(Shown::list(ancestors, &local, overlays.as_ref()));
    body.extend(br#","descendants":"#);
    body.extend(Shown::list(descendants, &local, overlays.as_ref()));
    body.push(b'}');
    Ok((body, unmapped))
}

const EMPTY: &[u8] = br#"{"ancestors":[],"descendants":[]}"#;
