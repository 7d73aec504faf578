//! Single posts.

use driftline_store::{
    LocalId, StoreError, Tx, history,
    instance::{self, Instance},
    social::list_entry,
    timeline::TimelinePost,
    viewer::ReadableSources,
};
use utoipa::IntoParams;

use super::{entity_template::EntityTemplate, local_references::LocalReferences};
use crate::{
    auth::{MayRead, RequestContext, needs},
    description::ids::StatusId,
    mastodon::{
        answer,
        entities::{Status, StatusEdit},
        page::Page,
        page_query::PageQuery,
        view::View,
    },
    transport::{ApiError, ApiResult, PathId, Problem},
};

/// A status, by its own ID or by that of one of its entries.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = Status), (status = 404, body = Problem, description = "It is unknown, or not for the caller")),
)]
pub(crate) async fn one(reader: MayRead<needs::ReadStatuses>, PathId(id): PathId) -> ApiResult {
    entity(&reader, id).await
}

/// Which statuses.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct StatusIdsParams {
    /// At most 20; also as `id`.
    #[param(rename = "id[]", value_type = Vec<StatusId>)]
    id: Option<Vec<String>>,
}

/// Several statuses, by their IDs, in that order: those that the caller may see.
#[utoipa::path(
    get, path = "/api/v1/statuses", tag = "statuses", params(StatusIdsParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status]), (status = 400, body = Problem, description = "Too many IDs")),
)]
pub(crate) async fn several(reader: MayRead<needs::ReadStatuses>, query: PageQuery) -> ApiResult {
    let asked = query.texts("id").filter_map(|id| id.parse().ok());
    let ids: Vec<LocalId> = asked.collect();
    if ids.len() > MAX_AT_ONCE {
        return Err(ApiError::BadParameter(format!(
            "at most {MAX_AT_ONCE} IDs can be asked for at once"
        )));
    }
    let view = View::new(&reader);
    let page = reader.read(move |tx| {
        let mut posts = Vec::with_capacity(ids.len());
        for id in &ids {
            posts.extend(list_entry::status(tx, *id, view.viewer)?);
        }
        Page::write(tx, &posts, &view)
    });
    // What was asked for by its IDs has no neighbouring pages.
    Ok(page.await?.by(None).answer(&query))
}

/// The entity `Status` of that ID.
pub(crate) async fn entity(context: &RequestContext, id: u64) -> ApiResult {
    let view = View::new(context);
    answer_post(context, id, move |tx, post, instance| {
        view.status(tx, post, instance)
    })
    .await
}

/// The versions of a status, the oldest first, the one that is shown now at the end.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/history", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [StatusEdit]), (status = 404, body = Problem)),
)]
pub(crate) async fn history(reader: MayRead<needs::ReadStatuses>, PathId(id): PathId) -> ApiResult {
    let (viewer, address) = (reader.viewer, reader.address.clone());
    answer_post(&reader, id, move |tx, post, instance| {
        let versions = history::versions(tx, post.post_id, viewer)?;
        let mut shown: Vec<EntityTemplate> = versions
            .iter()
            .filter_map(|version| EntityTemplate::version(post, instance, version, &address))
            .collect();
        shown.push(EntityTemplate::edit(post, instance, &address));
        let readable = ReadableSources::load(tx, viewer)?;
        let local = LocalReferences::find(tx, &shown, &readable, &address)?;
        Ok(EntityTemplate::list(&shown, &local, None))
    })
    .await
}

/// Answers what `write` makes of the post of that ID.
async fn answer_post(
    context: &RequestContext,
    id: u64,
    write: impl Fn(&mut Tx<'_>, &TimelinePost, &Instance) -> Result<Vec<u8>, StoreError>
    + Send
    + 'static,
) -> ApiResult {
    let viewer = context.viewer;
    let written = context.read(move |tx| {
        let Some(post) = list_entry::status(tx, LocalId::new(id), viewer)? else {
            return Ok(None);
        };
        let Some(instance) = instance::by_id(tx, post.instance)? else {
            return Ok(None);
        };
        write(tx, &post, &instance).map(Some)
    });
    let body = written.await?.ok_or(ApiError::NotFound)?;
    Ok(answer::written(body))
}

/// How many statuses are asked for at once, as in Mastodon.
const MAX_AT_ONCE: usize = 20;
