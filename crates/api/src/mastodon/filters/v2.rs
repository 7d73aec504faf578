//! Filters of posts, version 2. What they match is said on the way out, in a post's `filtered`; apps do the
//! rest.

use std::{slice, sync::Arc};

use axum::Json;
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx,
    social::{
        filter::{self, Filter, FilterRefused, Keyword, KeywordChange},
        list_entry,
    },
    timeline::{self, Viewer},
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    cache::filter_entity,
    params::{FilterParams, keyword_changes, keyword_rule, new_settings},
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::{FilterId, FilterKeywordId, FilterStatusId},
    mastodon::{
        answer::{done, found},
        bodies::{ChangedKeyword, FilterChange, FilteredStatus, NewFilter, NewKeyword},
        entities::{Filter as FilterEntity, FilterKeyword, FilterStatus},
        values::text,
    },
    transport::{ApiError, ApiResult, JsonResult, Params, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(all, create))
        .routes(routes!(one, set, remove))
        .routes(routes!(keywords, add_keyword))
        .routes(routes!(keyword, set_keyword, remove_keyword))
        .routes(routes!(posts, add_post))
        .routes(routes!(one_post, remove_post))
}

fn keyword_entity(keyword: &Keyword) -> Value {
    json!({
        "id": keyword.id.to_string(),
        "keyword": keyword.rule.keyword,
        "whole_word": keyword.rule.whole_word,
    })
}

/// The entities `FilterStatus` of a filter's posts that its owner may see.
fn post_entities(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    filter: &Filter,
) -> Result<Vec<Value>, StoreError> {
    let keys: Vec<_> = filter.posts.iter().map(|part| part.key).collect();
    let seen = timeline::by_post_ids(tx, &keys, Viewer::Account(account))?;
    let shown = filter.posts.iter().filter_map(|part| {
        let post = seen.get(&part.key.post)?;
        Some(json!({ "id": part.id.to_string(), "status_id": post.id.to_string() }))
    });
    Ok(shown.collect())
}

fn whole(tx: &mut Tx<'_>, account: LocalAccountId, filter: &Filter) -> Result<Value, StoreError> {
    let mut entity = filter_entity(filter);
    entity["keywords"] = filter.keywords.iter().map(keyword_entity).collect();
    entity["statuses"] = post_entities(tx, account, filter)?.into();
    Ok(entity)
}

/// The account's filters.
#[utoipa::path(
    get, path = "/api/v2/filters", tag = "filters",
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterEntity])),
)]
async fn all(caller: LoggedIn<needs::ReadFilters>) -> JsonResult<Vec<Value>> {
    let read = caller.read(move |tx, account| {
        let filters = filter::all(tx, account)?;
        let all = filters.iter().map(|filter| whole(tx, account, filter));
        all.collect()
    });
    read.await.map(Json)
}

/// A filter.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterEntity), (status = 404, body = Problem)),
)]
async fn one(caller: LoggedIn<needs::ReadFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let read = caller.read(move |tx, account| {
        let found = filter::by_id(tx, account, LocalId::new(id))?;
        let found = found.map(|filter| whole(tx, account, &filter));
        found.transpose()
    });
    found(read.await?)
}

/// Makes a filter.
#[utoipa::path(
    post, path = "/api/v2/filters", tag = "filters",
    request_body(content((NewFilter), (NewFilter = "application/x-www-form-urlencoded"), (NewFilter = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterEntity), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn create(
    caller: LoggedIn<needs::WriteFilters>,
    Params(params): Params<FilterParams>,
) -> JsonResult<Value> {
    let now_ms = caller.now_ms();
    let settings = params.over(new_settings(), now_ms)?;
    let changes = keyword_changes(&params.rest, &[])?;
    let keywords = changes.into_iter().filter_map(|change| match change {
        KeywordChange::Add(rule) => Some(rule),
        _ => None,
    });
    let keywords: Vec<_> = keywords.collect();
    write_whole(&caller, move |tx, account| {
        filter::create(tx, account, settings.clone(), &keywords, now_ms)
    })
    .await
}

/// Changes a filter and its keywords.
#[utoipa::path(
    put, path = "/api/v2/filters/{id}", tag = "filters", params(("id" = FilterId, Path)),
    request_body(content((FilterChange), (FilterChange = "application/x-www-form-urlencoded"), (FilterChange = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterEntity), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn set(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
    Params(params): Params<FilterParams>,
) -> JsonResult<Value> {
    let now_ms = caller.now_ms();
    let known = load(&caller, id).await?;
    let changes = keyword_changes(&params.rest, &known.keywords)?;
    let settings = params.over(known.settings, now_ms)?;
    write_whole(&caller, move |tx, account| {
        filter::set(tx, account, known.id, settings.clone(), &changes, now_ms)
    })
    .await
}

async fn load<S>(caller: &LoggedIn<S>, id: u64) -> ApiResult<Filter> {
    let found = caller.read(move |tx, account| filter::by_id(tx, account, LocalId::new(id)));
    found.await?.ok_or(ApiError::NotFound)
}

/// Writes a filter, and answers it.
async fn write_whole<S>(
    caller: &LoggedIn<S>,
    mut write_filter: impl FnMut(
        &mut Tx<'_>,
        LocalAccountId,
    ) -> Result<Result<Filter, FilterRefused>, StoreError>
    + Send
    + 'static,
) -> JsonResult<Value> {
    let written = write(caller, move |tx, account| {
        match write_filter(tx, account)? {
            Ok(filter) => whole(tx, account, &filter).map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    });
    written.await.map(Json)
}

/// Writes to the account's filters.
pub(crate) async fn write<S, T: Send + 'static>(
    caller: &LoggedIn<S>,
    write: impl FnMut(&mut Tx<'_>, LocalAccountId) -> Result<Result<T, FilterRefused>, StoreError>
    + Send
    + 'static,
) -> ApiResult<T> {
    let written = caller.write(write).await?;
    written.map_err(|refused| match refused {
        FilterRefused::NotFound => ApiError::NotFound,
        refused => ApiError::invalid(refused),
    })
}

/// Removes a filter.
#[utoipa::path(
    delete, path = "/api/v2/filters/{id}", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove(caller: LoggedIn<needs::WriteFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let removed = caller.write(move |tx, account| filter::remove(tx, account, LocalId::new(id)));
    done(removed.await?)
}

/// The keywords of a filter.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}/keywords", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterKeyword]), (status = 404, body = Problem)),
)]
async fn keywords(
    caller: LoggedIn<needs::ReadFilters>,
    PathId(id): PathId,
) -> JsonResult<Vec<Value>> {
    let filter = load(&caller, id).await?;
    Ok(Json(filter.keywords.iter().map(keyword_entity).collect()))
}

/// What a keyword is created or changed with.
#[derive(Deserialize)]
struct KeywordParams {
    keyword: Option<String>,
    whole_word: Option<Value>,
}

/// Adds a keyword to a filter.
#[utoipa::path(
    post, path = "/api/v2/filters/{id}/keywords", tag = "filters", params(("id" = FilterId, Path)),
    request_body(content((NewKeyword), (NewKeyword = "application/x-www-form-urlencoded"), (NewKeyword = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterKeyword), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn add_keyword(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
    Params(params): Params<KeywordParams>,
) -> JsonResult<Value> {
    let rule = keyword_rule(params.keyword, params.whole_word.as_ref(), None);
    let known = load(&caller, id).await?;
    let filter = change(&caller, known, KeywordChange::Add(rule)).await?;
    let newest = filter.keywords.iter().max_by_key(|keyword| keyword.id);
    found(newest.map(keyword_entity))
}

async fn change<S>(
    caller: &LoggedIn<S>,
    known: Filter,
    change: KeywordChange,
) -> ApiResult<Filter> {
    let now_ms = caller.now_ms();
    let written = write(caller, move |tx, account| {
        let (settings, changes) = (known.settings.clone(), slice::from_ref(&change));
        filter::set(tx, account, known.id, settings, changes, now_ms)
    });
    written.await
}

/// The filter of a keyword, and the keyword.
pub(crate) async fn keyword_by_id<S>(
    caller: &LoggedIn<S>,
    id: u64,
) -> ApiResult<(Filter, Keyword)> {
    let filters = caller.read(filter::all).await?;
    let found = filters.into_iter().find_map(|filter| {
        let mut keywords = filter.keywords.iter();
        let keyword = keywords.find(|keyword| keyword.id.raw() == id)?.clone();
        Some((filter, keyword))
    });
    found.ok_or(ApiError::NotFound)
}

/// A keyword of a filter.
#[utoipa::path(
    get, path = "/api/v2/filters/keywords/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterKeyword), (status = 404, body = Problem)),
)]
async fn keyword(caller: LoggedIn<needs::ReadFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let (_, keyword) = keyword_by_id(&caller, id).await?;
    Ok(Json(keyword_entity(&keyword)))
}

/// Changes a keyword of a filter.
#[utoipa::path(
    put, path = "/api/v2/filters/keywords/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    request_body(content((ChangedKeyword), (ChangedKeyword = "application/x-www-form-urlencoded"), (ChangedKeyword = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterKeyword), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn set_keyword(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
    Params(params): Params<KeywordParams>,
) -> JsonResult<Value> {
    let (filter, Keyword { id, rule }) = keyword_by_id(&caller, id).await?;
    let rule = keyword_rule(params.keyword, params.whole_word.as_ref(), Some(rule));
    let keyword = Keyword { id, rule };
    change(&caller, filter, KeywordChange::Set(keyword.clone())).await?;
    Ok(Json(keyword_entity(&keyword)))
}

/// Removes a keyword from its filter.
#[utoipa::path(
    delete, path = "/api/v2/filters/keywords/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove_keyword(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
) -> JsonResult<Value> {
    let (filter, keyword) = keyword_by_id(&caller, id).await?;
    change(&caller, filter, KeywordChange::Remove(keyword.id)).await?;
    done(true)
}

/// The statuses that a filter matches by their IDs.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}/statuses", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterStatus]), (status = 404, body = Problem)),
)]
async fn posts(caller: LoggedIn<needs::ReadFilters>, PathId(id): PathId) -> JsonResult<Vec<Value>> {
    let filter = load(&caller, id).await?;
    let posts = caller.read(move |tx, account| post_entities(tx, account, &filter));
    posts.await.map(Json)
}

/// A post that a filter is to match.
#[derive(Deserialize)]
struct PostParams {
    status_id: Value,
}

/// Adds a status to a filter.
#[utoipa::path(
    post, path = "/api/v2/filters/{id}/statuses", tag = "filters", params(("id" = FilterId, Path)),
    request_body(content((FilteredStatus), (FilteredStatus = "application/x-www-form-urlencoded"), (FilteredStatus = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterStatus), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn add_post(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
    Params(params): Params<PostParams>,
) -> JsonResult<Value> {
    let (viewer, now_ms) = (caller.viewer, caller.now_ms());
    let post = text(&params.status_id).and_then(|text| text.parse::<LocalId>().ok());
    let post = post.ok_or(ApiError::NotFound)?;
    let stored = caller.read(move |tx, _| list_entry::status(tx, post, viewer));
    let key = stored.await?.ok_or(ApiError::NotFound)?.key();
    let added = write(&caller, move |tx, account| {
        filter::add_post(tx, account, LocalId::new(id), key, now_ms)
    });
    let id = added.await?.id.to_string();
    Ok(Json(json!({ "id": id, "status_id": post.to_string() })))
}

/// A status that a filter matches by its ID.
#[utoipa::path(
    get, path = "/api/v2/filters/statuses/{id}", tag = "filters", params(("id" = FilterStatusId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterStatus), (status = 404, body = Problem)),
)]
async fn one_post(caller: LoggedIn<needs::ReadFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let read = caller.read(move |tx, account| {
        let mut all = Vec::new();
        for filter in filter::all(tx, account)? {
            all.extend(post_entities(tx, account, &filter)?);
        }
        Ok(all)
    });
    let id = Value::from(id.to_string());
    found(read.await?.into_iter().find(|part| part["id"] == id))
}

/// Removes a status from its filter.
#[utoipa::path(
    delete, path = "/api/v2/filters/statuses/{id}", tag = "filters", params(("id" = FilterStatusId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove_post(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
) -> JsonResult<Value> {
    let removed =
        caller.write(move |tx, account| filter::remove_post(tx, account, LocalId::new(id)));
    done(removed.await?)
}
