//! Bookmarks and favourites. They stay on this server: the author of a post that was read elsewhere is not
//! notified, and neither is anybody here.

use std::sync::Arc;

use axum::Json;
use driftline_core::social::Mark;
use driftline_store::{
    LocalId, StoreError, Tx, account_id,
    social::{list_entry, marked_post, marked_timeline},
    timeline::{self, TimelinePost, Viewer},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::by_id;
use crate::{
    App,
    auth::{LoggedIn, MayRead, needs},
    description::ids::StatusId,
    mastodon::{
        accounts::account_entities::{Entities, entities},
        entities::{Account, Status},
        page::Page,
        page_query::{MarkPageParams, PageQuery, ends},
        view::View,
    },
    transport::{ApiError, ApiResult, JsonResult, PathId, Problem},
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
async fn bookmark(caller: LoggedIn<needs::WriteBookmarks>, PathId(id): PathId) -> ApiResult {
    set(&caller, id, Mark::Bookmark, true).await
}

/// Ends a bookmark.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/unbookmark", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:bookmarks"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn unbookmark(caller: LoggedIn<needs::WriteBookmarks>, PathId(id): PathId) -> ApiResult {
    set(&caller, id, Mark::Bookmark, false).await
}

/// Favourites a status.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/favourite", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:favourites"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn favourite(caller: LoggedIn<needs::WriteFavourites>, PathId(id): PathId) -> ApiResult {
    set(&caller, id, Mark::Favourite, true).await
}

/// Ends a favourite.
#[utoipa::path(
    post, path = "/api/v1/statuses/{id}/unfavourite", tag = "statuses", params(("id" = StatusId, Path)),
    security(("account" = ["write:favourites"])),
    responses((status = 200, body = Status), (status = 404, body = Problem)),
)]
async fn unfavourite(caller: LoggedIn<needs::WriteFavourites>, PathId(id): PathId) -> ApiResult {
    set(&caller, id, Mark::Favourite, false).await
}

async fn set<S>(caller: &LoggedIn<S>, id: u64, mark: Mark, is_set: bool) -> ApiResult {
    let (viewer, now_ms) = (caller.viewer, caller.now_ms());
    let read = caller.read(move |tx, _| {
        let Some(post) = list_entry::status(tx, LocalId::new(id), viewer)? else {
            return Ok(None);
        };
        Ok(Some((boosted(tx, &post, viewer)?, post)))
    });
    let (boosted, own) = read.await?.ok_or(ApiError::NotFound)?;
    let write = caller.write(move |tx, account| {
        if is_set {
            let post = boosted.as_ref().unwrap_or(&own);
            return match is_marked(tx, viewer, mark, post)? {
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
    });
    write.await?;
    by_id::entity(caller, id).await
}

/// The IDs that the store knows a post and its copies by: what marks one of them marks the post.
fn ids(post: &TimelinePost) -> Vec<LocalId> {
    let copies = post.copies.iter().map(|key| key.post);
    [post.post_id].into_iter().chain(copies).collect()
}

/// Whether the viewer's account has marked a post so.
fn is_marked(
    tx: &mut Tx<'_>,
    viewer: Viewer,
    mark: Mark,
    post: &TimelinePost,
) -> Result<bool, StoreError> {
    let Some(account) = viewer.account() else {
        return Ok(false);
    };
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
async fn bookmarks(caller: LoggedIn<needs::ReadBookmarks>, query: PageQuery) -> ApiResult {
    page(&caller, Mark::Bookmark, &query).await
}

/// The posts that the account favourited, the latest favourite first.
#[utoipa::path(
    get, path = "/api/v1/favourites", tag = "timelines", params(MarkPageParams),
    security(("account" = ["read:favourites"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
async fn favourites(caller: LoggedIn<needs::ReadFavourites>, query: PageQuery) -> ApiResult {
    page(&caller, Mark::Favourite, &query).await
}

async fn page<S>(caller: &LoggedIn<S>, mark: Mark, query: &PageQuery) -> ApiResult {
    let (range, view) = (query.range, View::new(caller));
    let page = caller.read(move |tx, account| {
        let marked = marked_timeline::page(tx, account, mark, &range)?;
        let ends = ends(&marked, |(id, _)| *id);
        let posts: Vec<TimelinePost> = marked.into_iter().map(|(_, post)| post).collect();
        Ok(Page::write(tx, &posts, &view)?.by(ends))
    });
    Ok(page.await?.answer(query))
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
    reader: MayRead<needs::ReadAccounts>,
    PathId(id): PathId,
) -> JsonResult<Entities> {
    let viewer = reader.viewer;
    let read = reader.read(move |tx| {
        let Some(post) = list_entry::status(tx, LocalId::new(id), viewer)? else {
            return Ok(None);
        };
        let post = boosted(tx, &post, viewer)?.unwrap_or(post);
        is_marked(tx, viewer, Mark::Favourite, &post).map(Some)
    });
    let is_favourite = read.await?.ok_or(ApiError::NotFound)?;
    let by = viewer.account().filter(|_| is_favourite).map(account_id);
    let by = entities(&reader, move |_| Ok(by.into_iter().collect()));
    Ok(Json(by.await?))
}

/// The accounts of this server that boosted the post: none, since nothing can be posted here.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/reblogged_by", tag = "statuses", params(("id" = StatusId, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Account]), (status = 404, body = Problem)),
)]
async fn reblogged_by(
    reader: MayRead<needs::ReadAccounts>,
    PathId(id): PathId,
) -> JsonResult<[(); 0]> {
    let viewer = reader.viewer;
    let read = reader.read(move |tx| list_entry::status(tx, LocalId::new(id), viewer));
    match read.await? {
        Some(_) => Ok(Json([])),
        None => Err(ApiError::NotFound),
    }
}
