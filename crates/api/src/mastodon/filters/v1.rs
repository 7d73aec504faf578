//! Filters of posts, version 1: a view of those of version 2, in which each keyword is a filter.

use std::sync::Arc;

use axum::Json;
use driftline_core::social::{FilterAction, FilterSettings};
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalId,
    social::filter::{self, Filter, FilterRefused, Keyword, KeywordChange},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    params::{FilterParams, keyword_rule, new_settings},
    v2::{keyword_by_id, write},
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::FilterKeywordId,
    mastodon::{
        answer::{done, found},
        bodies::{FilterV1Change, NewFilterV1},
        entities::FilterV1,
        values::boolean,
    },
    transport::{ApiError, ApiResult, JsonResult, Params, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(all, create))
        .routes(routes!(one, set, remove))
}

/// The entity `V1::Filter` of a keyword.
fn entity(filter: &Filter, keyword: &Keyword) -> Value {
    let settings = &filter.settings;
    let contexts = settings.contexts.iter().map(|context| context.name());
    json!({
        "id": keyword.id.to_string(),
        "phrase": keyword.rule.keyword,
        "context": contexts.collect::<Vec<_>>(),
        "whole_word": keyword.rule.whole_word,
        "expires_at": settings.expires_at_ms.map(iso_8601),
        "irreversible": settings.action == FilterAction::Hide,
    })
}

/// What a filter is created or changed with.
#[derive(Deserialize)]
struct FilterV1Params {
    phrase: Option<String>,
    context: Option<Value>,
    irreversible: Option<Value>,
    whole_word: Option<Value>,
    /// `expires_in`, of which null says something.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl FilterV1Params {
    /// What they say of the filter of version 2.
    fn settings(
        &self,
        title: Option<&str>,
        known: FilterSettings,
        now_ms: i64,
    ) -> ApiResult<FilterSettings> {
        let is_hidden = boolean(self.irreversible.as_ref());
        let action = is_hidden.map(|is_hidden| match (is_hidden, known.action) {
            (true, _) => FilterAction::Hide,
            (false, FilterAction::Hide) => FilterAction::Warn,
            (false, other) => other,
        });
        let params = FilterParams {
            title: title.map(title_of),
            context: self.context.clone(),
            filter_action: action.map(|action| action.name().to_owned()),
            rest: self.rest.clone(),
        };
        params.over(known, now_ms)
    }
}

/// The account's filters, one for each keyword of those of version 2.
#[utoipa::path(
    get, path = "/api/v1/filters", tag = "filters",
    security(("account" = ["read:filters"])),
    responses((status = 200, body = [FilterV1])),
)]
async fn all(caller: LoggedIn<needs::ReadFilters>) -> JsonResult<Vec<Value>> {
    let filters = caller.read(filter::all).await?;
    let all = filters.iter().flat_map(|filter| {
        let keywords = filter.keywords.iter();
        keywords.map(|keyword| entity(filter, keyword))
    });
    Ok(Json(all.collect()))
}

/// A filter.
#[utoipa::path(
    get, path = "/api/v1/filters/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    security(("account" = ["read:filters"])),
    responses((status = 200, body = FilterV1), (status = 404, body = Problem)),
)]
async fn one(caller: LoggedIn<needs::ReadFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let (filter, keyword) = keyword_by_id(&caller, id).await?;
    Ok(Json(entity(&filter, &keyword)))
}

/// Makes a filter; in version 2 it has the phrase as its title and only keyword.
#[utoipa::path(
    post, path = "/api/v1/filters", tag = "filters",
    request_body(content((NewFilterV1), (NewFilterV1 = "application/x-www-form-urlencoded"), (NewFilterV1 = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterV1), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn create(
    caller: LoggedIn<needs::WriteFilters>,
    Params(params): Params<FilterV1Params>,
) -> JsonResult<Value> {
    let now_ms = caller.now_ms();
    let phrase = params.phrase.as_deref().unwrap_or_default();
    let settings = params.settings(Some(phrase), new_settings(), now_ms)?;
    let keywords = [keyword_rule(
        params.phrase,
        params.whole_word.as_ref(),
        None,
    )];
    let created = write(&caller, move |tx, account| {
        filter::create(tx, account, settings.clone(), &keywords, now_ms)
    });
    let created = created.await?;
    found(
        created
            .keywords
            .first()
            .map(|keyword| entity(&created, keyword)),
    )
}

/// Changes a filter. Of one with several keywords in version 2, only the phrase and whether it is a whole word.
#[utoipa::path(
    put, path = "/api/v1/filters/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    request_body(content((FilterV1Change), (FilterV1Change = "application/x-www-form-urlencoded"), (FilterV1Change = "multipart/form-data"))),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = FilterV1), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn set(
    caller: LoggedIn<needs::WriteFilters>,
    PathId(id): PathId,
    Params(params): Params<FilterV1Params>,
) -> JsonResult<Value> {
    let now_ms = caller.now_ms();
    let (known, Keyword { id, rule }) = keyword_by_id(&caller, id).await?;
    let is_alone = known.keywords.len() == 1;
    // A title that somebody gave stays.
    let is_title = is_alone && known.settings.title == title_of(&rule.keyword);
    let title = params.phrase.as_deref().filter(|_| is_title);
    let settings = params.settings(title, known.settings.clone(), now_ms)?;
    if !is_alone && !is_same(&settings, &known.settings) {
        return Err(ApiError::Unprocessable(SEVERAL_KEYWORDS.to_owned()));
    }
    let settings = match is_alone {
        true => settings,
        false => known.settings,
    };
    let rule = keyword_rule(params.phrase, params.whole_word.as_ref(), Some(rule));
    let changes = [KeywordChange::Set(Keyword { id, rule })];
    let set = write(&caller, move |tx, account| {
        filter::set(tx, account, known.id, settings.clone(), &changes, now_ms)
    });
    let set = set.await?;
    let changed = set.keywords.iter().find(|keyword| keyword.id == id);
    found(changed.map(|keyword| entity(&set, keyword)))
}

/// Removes a filter; in version 2 its keyword, and what has nothing else.
#[utoipa::path(
    delete, path = "/api/v1/filters/{id}", tag = "filters", params(("id" = FilterKeywordId, Path)),
    security(("account" = ["write:filters"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove(caller: LoggedIn<needs::WriteFilters>, PathId(id): PathId) -> JsonResult<Value> {
    let (now_ms, id) = (caller.now_ms(), LocalId::new(id));
    let removed = write(&caller, move |tx, account| {
        let mut filters = filter::all(tx, account)?.into_iter();
        let found = filters.find(|filter| filter.keywords.iter().any(|known| known.id == id));
        let Some(filter) = found else {
            return Ok(Err(FilterRefused::NotFound));
        };
        if filter.keywords.len() == 1 && filter.posts.is_empty() {
            filter::remove(tx, account, filter.id)?;
            return Ok(Ok(()));
        }
        let changes = [KeywordChange::Remove(id)];
        let set = filter::set(tx, account, filter.id, filter.settings, &changes, now_ms)?;
        Ok(set.map(|_| ()))
    });
    removed.await?;
    done(true)
}

/// The title that a phrase gives its filter.
fn title_of(phrase: &str) -> String {
    phrase.chars().take(MAX_TITLE).collect()
}

/// Whether nothing that version 1 shows is another. An app sends all that it knows, the time until the end too.
fn is_same(new: &FilterSettings, known: &FilterSettings) -> bool {
    let mut contexts = new.contexts.clone();
    contexts.sort_unstable();
    contexts.dedup();
    let ends = |settings: &FilterSettings| settings.expires_at_ms.map(|end| end / 60_000);
    let is_near = match (ends(new), ends(known)) {
        (Some(new), Some(known)) => (new - known).abs() <= 1,
        (new, known) => new == known,
    };
    contexts == known.contexts && new.action == known.action && is_near
}

/// Of a filter's title.
const MAX_TITLE: usize = 256;
const SEVERAL_KEYWORDS: &str = "Validation failed: this filter has several keywords, so an app of filters' version 2 has to change it";
