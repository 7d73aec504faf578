//! Pages of timelines.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use driftline_mastodon::has_media;
use driftline_store::{
    SourceId, SourceKey, StoreError, Tx, source,
    timeline::{self, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::{list_timeline, lists::is_the_operators, unwanted::Unwanted};
use crate::{
    App,
    auth::{MayRead, OperatorOrAccount, needs},
    description::ids::ListId,
    mastodon::{
        answer,
        entities::Status,
        page::Page,
        page_query::{PageParams, PageQuery, PublicParams},
        view::View,
    },
    transport::{Address, ApiError, PathId, Problem},
};

/// The public posts of every source that the caller may read, newest first.
#[utoipa::path(
    get, path = "/api/v1/timelines/public", tag = "timelines", params(PublicParams, PageParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
pub(crate) async fn public(
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let (viewer, range) = (caller.viewer(), query.range);
    let page = if query.local {
        let view = View::of(&app, viewer);
        answer::read(&app, move |tx| Page::write(tx, &[], &view)).await?
    } else {
        let (only_media, now_ms) = (query.only_media, app.people.now_ms());
        let read = move |tx: &mut Tx<'_>, range: &Range| {
            public_stretch(tx, range, viewer, only_media, now_ms).map(Some)
        };
        Page::picked(&app, range, viewer, read).await?
    };
    Ok(page.answer(&address, "/api/v1/timelines/public", &query))
}

/// A part of a viewer's public timeline, without what the viewer does not want to see.
pub(crate) fn public_stretch(
    tx: &mut Tx<'_>,
    range: &Range,
    viewer: Viewer,
    only_media: bool,
    now_ms: i64,
) -> Result<Stretch, StoreError> {
    let unwanted = Unwanted::ask(tx, viewer, now_ms)?;
    let readable = ReadableSources::load(tx, viewer)?;
    let unwanted = unwanted.read(tx)?;
    let picks = |post: &TimelinePost| !unwanted.has(post) && (!only_media || with_media(post));
    let all = unwanted.is_empty() && !only_media;
    let picks: Option<timeline::Picks<'_>> = if all { None } else { Some(&picks) };
    timeline::public_picked(tx, range, &readable, picks)
}

/// The posts of a list: of its accounts, or of a source.
#[utoipa::path(
    get, path = "/api/v1/timelines/list/{id}", tag = "timelines", params(("id" = ListId, Path), PageParams),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem), (status = 404, body = Problem)),
)]
pub(crate) async fn list(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    // Sources are the operator's lists, and an account has its own.
    if let OperatorOrAccount::Account(account, _) = reader {
        return list_timeline::page(&app, account.id, id, &address, &query).await;
    }
    let view = View::of(&app, Viewer::Operator);
    let (range, source) = (query.range, SourceId::new(id));
    let page = if query.only_media {
        let picked = Page::picked(&app, range, Viewer::Operator, move |tx, range| {
            let Some(key) = readable(tx, source)? else {
                return Ok(None);
            };
            timeline::source_picked(tx, key, range, Viewer::Operator, &with_media).map(Some)
        });
        picked.await?
    } else {
        let page = answer::read(&app, move |tx| source_page(tx, source, &range, &view));
        page.await?.ok_or(ApiError::NotFound)?
    };
    let path = format!("/api/v1/timelines/list/{id}");
    Ok(page.answer(&address, &path, &query))
}

/// `None` if the source may not be read.
fn source_page(
    tx: &mut Tx<'_>,
    id: SourceId,
    range: &Range,
    view: &View,
) -> Result<Option<Page>, StoreError> {
    let Some(source) = readable(tx, id)? else {
        return Ok(None);
    };
    let posts = timeline::source(tx, source, range, Viewer::Operator)?;
    Page::write(tx, &posts, view).map(Some)
}

fn readable(tx: &mut Tx<'_>, id: SourceId) -> Result<Option<SourceKey>, StoreError> {
    let source = source::by_id(tx, id)?.filter(is_the_operators);
    Ok(source.map(|source| source.key()))
}

fn with_media(post: &TimelinePost) -> bool {
    has_media(&post.raw)
}
