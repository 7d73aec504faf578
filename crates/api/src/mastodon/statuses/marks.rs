//! Bookmarks and favourites. They stay on this server: the author of a post that was read elsewhere is not
//! told, and neither is anybody here.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use driftline_core::social::Mark;
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx, account_id,
    social::{local_account, marked_post, marked_timeline},
    timeline::{self, TimelinePost, Viewer},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::by_id as statuses;
use crate::{
    App,
    auth::{LoggedIn, MayRead, needs},
    description::ids::StatusId,
    mastodon::{
        accounts::profiles::{Entities, entities},
        answer,
        entities::{Account, Status},
        page::Page,
        page_query::{MarkPageParams, PageQuery},
        view::View,
    },
    transport::{Address, ApiError, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(bookmark))
        .routes(routes!(unbookmark))
        .routes(routes!(favourite))
        .routes(routes!(unfavourite))
        .routes(routes!(favourited_by))
        .routes(routes!(reblogged_by))
        .routes(routes!(bookmarks))
        .routes(routes!(favourites))
}

/// Bookmarks a status.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/bookmark", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:bookmarks"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn bookmark(
    caller: LoggedIn<needs::WriteBookmarks>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    set(&app, caller.account.id, id, Mark::Bookmark, true).await
}

/// Ends a bookmark.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/unbookmark", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:bookmarks"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn unbookmark(
    caller: LoggedIn<needs::WriteBookmarks>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    set(&app, caller.account.id, id, Mark::Bookmark, false).await
}

/// Favourites a status.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/favourite", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:favourites"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn favourite(
    caller: LoggedIn<needs::WriteFavourites>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    set(&app, caller.account.id, id, Mark::Favourite, true).await
}

/// Ends a favourite.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/unfavourite", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:favourites"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn unfavourite(
    caller: LoggedIn<needs::WriteFavourites>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    set(&app, caller.account.id, id, Mark::Favourite, false).await
}

async fn set(
    app: &App,
    account: LocalAccountId,
    id: u64,
    mark: Mark,
    is_set: bool,
) -> Result<Response, ApiError> {
    let viewer = Viewer::Account(account);
    let read = move |tx: &mut Tx<'_>| {
        let Some(post) = timeline::status(tx, LocalId::new(id), viewer)? else {
            return Ok(None);
        };
        Ok::<_, StoreError>(Some((boosted(tx, &post, viewer)?, post)))
    };
    let (boosted, own) = app.store.read(read).await?.ok_or(ApiError::NotFound)?;
    let now_ms = app.people.now_ms();
    let write = move |tx: &mut Tx<'_>| {
        if is_set {
            let post = boosted.as_ref().unwrap_or(&own);
            return match is_marked(tx, account, mark, post)? {
                true => Ok(()),
                false => marked_post::set(tx, account, mark, post.key(), now_ms),
            };
        }
        // A boost was marked itself if the boosted post was not stored then.
        for post in boosted.iter().chain([&own]) {
            for id in ids(post) {
                marked_post::remove(tx, account, mark, id)?;
            }
        }
        Ok(())
    };
    app.store.write(local_account::root(account), write).await?;
    statuses::entity(app, viewer, id).await
}

/// The IDs that the store knows a post and its copies by: what marks one of them marks the post.
fn ids(post: &TimelinePost) -> Vec<LocalId> {
    let copies = post.copies.iter().map(|key| key.post);
    [post.post_id].into_iter().chain(copies).collect()
}

fn is_marked(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    mark: Mark,
    post: &TimelinePost,
) -> Result<bool, StoreError> {
    let marks = marked_post::of(tx, account, &ids(post))?;
    Ok(marks.iter().any(|(_, of)| *of == mark))
}

/// The post that a post boosts, if it is stored and the viewer may see it.
fn boosted(
    tx: &mut Tx<'_>,
    post: &TimelinePost,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let Some(name) = post.boost_of.as_deref() else {
        return Ok(None);
    };
    let Some(key) = timeline::keys(tx, post.instance, &[name])?.remove(name) else {
        return Ok(None);
    };
    Ok(timeline::by_post_ids(tx, &[key], viewer)?.remove(&key.post))
}

/// The posts that the account bookmarked, the latest bookmark first.
#[utoipa::path(
    get, path = "/api/v1/bookmarks", tag = "timelines", params(MarkPageParams),
    security(("account" = ["read:bookmarks"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
async fn bookmarks(
    caller: LoggedIn<needs::ReadBookmarks>,
    State(app): State<Arc<App>>,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let page = page(&app, caller.account.id, Mark::Bookmark, &query).await?;
    Ok(page.answer(&address, BOOKMARKS, &query))
}

/// The posts that the account favourited, the latest favourite first.
#[utoipa::path(
    get, path = "/api/v1/favourites", tag = "timelines", params(MarkPageParams),
    security(("account" = ["read:favourites"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
async fn favourites(
    caller: LoggedIn<needs::ReadFavourites>,
    State(app): State<Arc<App>>,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let page = page(&app, caller.account.id, Mark::Favourite, &query).await?;
    Ok(page.answer(&address, FAVOURITES, &query))
}

async fn page(
    app: &App,
    account: LocalAccountId,
    mark: Mark,
    query: &PageQuery,
) -> Result<Page, ApiError> {
    let (range, view) = (query.range, View::of(app, Viewer::Account(account)));
    answer::read(app, move |tx| {
        let marked = marked_timeline::page(tx, account, mark, &range)?;
        let (ids, posts): (Vec<LocalId>, Vec<TimelinePost>) = marked.into_iter().unzip();
        let page = Page::write(tx, &posts, &view)?;
        let ends = ids.first().copied().zip(ids.last().copied());
        Ok(page.by(ends))
    })
    .await
}

/// The account that asks, if it favourited the post.
///
/// Who else did is theirs to know.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/favourited_by", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Account]), (status = 404, body = Problem)),
)]
async fn favourited_by(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Entities>, ApiError> {
    let (viewer, account) = (caller.viewer(), caller.account_id());
    let read = move |tx: &mut Tx<'_>| {
        let Some(post) = timeline::status(tx, LocalId::new(id), viewer)? else {
            return Ok(None);
        };
        let Some(account) = account else {
            return Ok(Some(None));
        };
        let post = boosted(tx, &post, viewer)?.unwrap_or(post);
        let is_favourite = is_marked(tx, account, Mark::Favourite, &post)?;
        Ok::<_, StoreError>(Some(is_favourite.then_some(account)))
    };
    let found = app.store.read(read).await?.ok_or(ApiError::NotFound)?;
    let ids: Vec<_> = found.into_iter().map(account_id).collect();
    Ok(Json(
        entities(&app, viewer, address, move |_| Ok(ids.clone())).await?,
    ))
}

/// The accounts of this server that boosted the post: none, since nothing can be posted here.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/reblogged_by", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Account]), (status = 404, body = Problem)),
)]
async fn reblogged_by(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<[(); 0]>, ApiError> {
    let viewer = caller.viewer();
    let read = move |tx: &mut Tx<'_>| timeline::status(tx, LocalId::new(id), viewer);
    match app.store.read(read).await? {
        Some(_) => Ok(Json([])),
        None => Err(ApiError::NotFound),
    }
}

const BOOKMARKS: &str = "/api/v1/bookmarks";
const FAVOURITES: &str = "/api/v1/favourites";
