//! Filters of posts, version 2. What they match is said on the way out, in a post's `filtered`; apps do the
//! rest.

use std::{slice, str::FromStr as _, sync::Arc};

use axum::{Json, extract::State};
use driftline_core::social::{FilterAction, FilterContext, FilterSettings};
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalAccountId, LocalId, StoreError, Tx,
    social::{
        filter::{self, Filter, FilterRefused, Keyword, KeywordChange},
        local_account,
    },
    timeline::{self, Viewer},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::keyword_params::{keyword_changes, keyword_rule};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::{FilterId, FilterKeywordId, FilterStatusId},
    mastodon::{
        bodies::{ChangedKeyword, FilterChange, FilteredStatus, NewFilter, NewKeyword},
        entities::{Filter as FilterEntity, FilterKeyword, FilterStatus},
        timelines::markers::text,
    },
    transport::{ApiError, Params, PathId, Problem},
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

/// The entity `Filter` as it stands in a `FilterResult`, without its parts.
pub(crate) fn filter_entity(filter: &Filter) -> Value {
    let FilterSettings {
        title,
        contexts,
        action,
        expires_at_ms,
    } = &filter.settings;
    let contexts: Vec<&str> = contexts.iter().map(|context| context.name()).collect();
    json!({
        "id": filter.id.to_string(),
        "title": title,
        "context": contexts,
        "expires_at": expires_at_ms.map(iso_8601),
        "filter_action": action.name(),
    })
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
async fn all(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let account = caller.account.id;
    let read = move |tx: &mut Tx<'_>| {
        let filters = filter::all(tx, account)?;
        let all = filters.iter().map(|filter| whole(tx, account, filter));
        all.collect::<Result<Vec<_>, StoreError>>()
    };
    Ok(Json(app.store.read(read).await?))
}

/// A filter.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterEntity), (status = 404, body = Problem)),
)]
async fn one(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let read = move |tx: &mut Tx<'_>| {
        let found = filter::by_id(tx, account, LocalId::new(id))?;
        let found = found.map(|filter| whole(tx, account, &filter));
        found.transpose()
    };
    let found = app.store.read(read).await?;
    found.map(Json).ok_or(ApiError::NotFound)
}

/// What a filter is created or changed with.
#[derive(Deserialize)]
pub(crate) struct FilterParams {
    pub(crate) title: Option<String>,
    pub(crate) context: Option<Value>,
    pub(crate) filter_action: Option<String>,
    /// `expires_in`, of which null says something, and keywords.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

impl FilterParams {
    /// What they make of what was known.
    pub(crate) fn over(
        &self,
        known: FilterSettings,
        now_ms: i64,
    ) -> Result<FilterSettings, ApiError> {
        let invalid = |what: &str| ApiError::Unprocessable(format!("Validation failed: {what}"));
        let contexts = match &self.context {
            None => known.contexts,
            Some(value) => {
                let names = match value {
                    Value::Array(names) => names.iter().filter_map(text).collect(),
                    one => text(one).into_iter().collect::<Vec<String>>(),
                };
                let names = names.iter().filter(|name| !name.trim().is_empty());
                let contexts = names.map(|name| FilterContext::from_str(name.trim()));
                let contexts: Result<Vec<_>, _> = contexts.collect();
                contexts.map_err(|_| invalid("Context None or invalid context supplied"))?
            }
        };
        let action = self.filter_action.as_deref().map(FilterAction::from_str);
        let action = action.transpose();
        let action = action.map_err(|_| invalid("Filter action is not included in the list"))?;
        Ok(FilterSettings {
            title: self.title.clone().unwrap_or(known.title),
            contexts,
            action: action.unwrap_or(known.action),
            expires_at_ms: match self.expires_in_s()? {
                None => known.expires_at_ms,
                Some(None) => None,
                Some(Some(seconds)) => Some(now_ms.saturating_add(seconds.saturating_mul(1_000))),
            },
        })
    }

    /// `None` if it says nothing, and `Some(None)` for never.
    fn expires_in_s(&self) -> Result<Option<Option<i64>>, ApiError> {
        let Some(value) = self.rest.get("expires_in") else {
            return Ok(None);
        };
        let text = text(value).unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(Some(None));
        }
        let seconds = text.trim().parse().ok();
        let seconds = seconds.filter(|seconds| (1..=MAX_EXPIRES_IN_S).contains(seconds));
        let invalid = "expires_in has to be a number of seconds";
        let seconds = seconds.ok_or_else(|| ApiError::Unprocessable(invalid.to_owned()))?;
        Ok(Some(Some(seconds)))
    }
}

/// Those of a filter of which nothing is said.
pub(crate) fn new_settings() -> FilterSettings {
    FilterSettings {
        title: String::new(),
        contexts: Vec::new(),
        action: FilterAction::Warn,
        expires_at_ms: None,
    }
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
    State(app): State<Arc<App>>,
    Params(params): Params<FilterParams>,
) -> Result<Json<Value>, ApiError> {
    let (account, now_ms) = (caller.account.id, app.people.now_ms());
    let settings = params.over(new_settings(), now_ms)?;
    let changes = keyword_changes(&params.rest, &[])?;
    let keywords: Vec<_> = changes
        .into_iter()
        .filter_map(|change| match change {
            KeywordChange::Add(rule) => Some(rule),
            _ => None,
        })
        .collect();
    let write =
        move |tx: &mut Tx<'_>| filter::create(tx, account, settings.clone(), &keywords, now_ms);
    written(&app, account, write).await
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(params): Params<FilterParams>,
) -> Result<Json<Value>, ApiError> {
    let (account, now_ms, id) = (caller.account.id, app.people.now_ms(), LocalId::new(id));
    let known = found(&app, account, id).await?;
    let changes = keyword_changes(&params.rest, &known.keywords)?;
    let settings = params.over(known.settings, now_ms)?;
    let write =
        move |tx: &mut Tx<'_>| filter::set(tx, account, id, settings.clone(), &changes, now_ms);
    written(&app, account, write).await
}

async fn found(app: &App, account: LocalAccountId, id: LocalId) -> Result<Filter, ApiError> {
    let read = move |tx: &mut Tx<'_>| filter::by_id(tx, account, id);
    app.store.read(read).await?.ok_or(ApiError::NotFound)
}

async fn written(
    app: &App,
    account: LocalAccountId,
    mut write: impl FnMut(&mut Tx<'_>) -> Result<Result<Filter, FilterRefused>, StoreError>
    + Send
    + 'static,
) -> Result<Json<Value>, ApiError> {
    let write = move |tx: &mut Tx<'_>| match write(tx)? {
        Ok(filter) => whole(tx, account, &filter).map(Ok),
        Err(refused) => Ok(Err(refused)),
    };
    let written = app.store.write(local_account::root(account), write).await?;
    written.map(Json).map_err(refused)
}

pub(crate) fn refused(refused: FilterRefused) -> ApiError {
    match refused {
        FilterRefused::NotFound => ApiError::NotFound,
        refused => ApiError::Unprocessable(format!("Validation failed: {refused}")),
    }
}

/// Removes a filter.
#[utoipa::path(
    delete, path = "/api/v2/filters/{id}", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove(
    caller: LoggedIn<needs::WriteFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let remove = move |tx: &mut Tx<'_>| filter::remove(tx, account, LocalId::new(id));
    let root = local_account::root(account);
    match app.store.write(root, remove).await? {
        true => Ok(Json(json!({}))),
        false => Err(ApiError::NotFound),
    }
}

/// The keywords of a filter.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}/keywords", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterKeyword]), (status = 404, body = Problem)),
)]
async fn keywords(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Vec<Value>>, ApiError> {
    let filter = found(&app, caller.account.id, LocalId::new(id)).await?;
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(params): Params<KeywordParams>,
) -> Result<Json<Value>, ApiError> {
    let rule = keyword_rule(params.keyword, params.whole_word.as_ref(), None);
    let account = caller.account.id;
    let known = found(&app, account, LocalId::new(id)).await?;
    let filter = change(&app, account, known, KeywordChange::Add(rule)).await?;
    let newest = filter.keywords.iter().max_by_key(|keyword| keyword.id);
    let newest = newest.ok_or(ApiError::NotFound)?;
    Ok(Json(keyword_entity(newest)))
}

async fn change(
    app: &App,
    account: LocalAccountId,
    known: Filter,
    change: KeywordChange,
) -> Result<Filter, ApiError> {
    let now_ms = app.people.now_ms();
    let write = move |tx: &mut Tx<'_>| {
        let changes = slice::from_ref(&change);
        filter::set(
            tx,
            account,
            known.id,
            known.settings.clone(),
            changes,
            now_ms,
        )
    };
    let written = app.store.write(local_account::root(account), write).await?;
    written.map_err(refused)
}

/// The filter of a keyword, and the keyword.
pub(crate) async fn of_keyword(
    app: &App,
    account: LocalAccountId,
    id: u64,
) -> Result<(Filter, Keyword), ApiError> {
    let filters = app.store.read(move |tx| filter::all(tx, account)).await?;
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
async fn keyword(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let (_, keyword) = of_keyword(&app, caller.account.id, id).await?;
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(params): Params<KeywordParams>,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let (filter, keyword) = of_keyword(&app, account, id).await?;
    let rule = keyword_rule(
        params.keyword,
        params.whole_word.as_ref(),
        Some(keyword.rule),
    );
    let keyword = Keyword {
        id: keyword.id,
        rule,
    };
    change(&app, account, filter, KeywordChange::Set(keyword.clone())).await?;
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let (filter, keyword) = of_keyword(&app, account, id).await?;
    change(&app, account, filter, KeywordChange::Remove(keyword.id)).await?;
    Ok(Json(json!({})))
}

/// The statuses that a filter matches by their IDs.
#[utoipa::path(
    get, path = "/api/v2/filters/{id}/statuses", tag = "filters", params(("id" = FilterId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterStatus]), (status = 404, body = Problem)),
)]
async fn posts(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Vec<Value>>, ApiError> {
    let account = caller.account.id;
    let filter = found(&app, account, LocalId::new(id)).await?;
    let read = move |tx: &mut Tx<'_>| post_entities(tx, account, &filter);
    Ok(Json(app.store.read(read).await?))
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(params): Params<PostParams>,
) -> Result<Json<Value>, ApiError> {
    let (account, now_ms) = (caller.account.id, app.people.now_ms());
    let post = text(&params.status_id).and_then(|text| text.parse::<LocalId>().ok());
    let post = post.ok_or(ApiError::NotFound)?;
    let read = move |tx: &mut Tx<'_>| timeline::status(tx, post, Viewer::Account(account));
    let key = app.store.read(read).await?.ok_or(ApiError::NotFound)?.key();
    let write = move |tx: &mut Tx<'_>| filter::add_post(tx, account, LocalId::new(id), key, now_ms);
    let added = app.store.write(local_account::root(account), write).await?;
    let added = added.map_err(refused)?;
    Ok(Json(
        json!({ "id": added.id.to_string(), "status_id": post.to_string() }),
    ))
}

/// A status that a filter matches by its ID.
#[utoipa::path(
    get, path = "/api/v2/filters/statuses/{id}", tag = "filters", params(("id" = FilterStatusId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterStatus), (status = 404, body = Problem)),
)]
async fn one_post(
    caller: LoggedIn<needs::ReadFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let read = move |tx: &mut Tx<'_>| {
        let mut all = Vec::new();
        for filter in filter::all(tx, account)? {
            all.extend(post_entities(tx, account, &filter)?);
        }
        Ok::<_, StoreError>(all)
    };
    let all = app.store.read(read).await?;
    let id = Value::from(id.to_string());
    let found = all.into_iter().find(|part| part["id"] == id);
    found.map(Json).ok_or(ApiError::NotFound)
}

/// Removes a status from its filter.
#[utoipa::path(
    delete, path = "/api/v2/filters/statuses/{id}", tag = "filters", params(("id" = FilterStatusId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove_post(
    caller: LoggedIn<needs::WriteFilters>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let remove = move |tx: &mut Tx<'_>| filter::remove_post(tx, account, LocalId::new(id));
    let root = local_account::root(account);
    match app.store.write(root, remove).await? {
        true => Ok(Json(json!({}))),
        false => Err(ApiError::NotFound),
    }
}

/// A century.
const MAX_EXPIRES_IN_S: i64 = 3_200_000_000;
