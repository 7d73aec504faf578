//! An account's own sources: timelines of other servers that are mirrored for it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{DefaultBodyLimit, rejection::JsonRejection},
    http::StatusCode,
};
use driftline_core::{api::Api, names::audience::Audience};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids,
    mastodon::answer::found,
    transport::{ApiError, ApiResult, JsonResult, PathId, Problem},
};

/// The routes. Adding a source causes requests to its server.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(show, change, remove))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// A source of an account's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OwnSource {
    /// Its ID among the account's.
    #[schema(value_type = ids::SourceId)]
    pub id: String,
    /// Its name among the account's.
    pub name: String,
    /// Its server's address.
    pub url: String,
    /// The API that the server speaks.
    #[schema(value_type = String, example = "mastodon")]
    pub kind: Api,
    /// Which timeline of the server.
    pub timeline: String,
    /// Who else may read it: nobody (`private`), the accounts of this server (`members`) or the world (`public`).
    #[schema(value_type = String, example = "private")]
    pub audience: Audience,
    /// Whether the account has paused it.
    pub paused: bool,
    /// How it is, in a word.
    pub state: String,
    /// The same in words.
    pub state_text: String,
}

/// The ID of a source among its account's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnSourceId(pub u64);

/// A source to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOwnSource {
    /// Its server's address, with `https://`.
    pub url: String,
    /// The API that the server speaks; Mastodon's where it is left out.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "mastodon")]
    pub kind: Option<Api>,
    /// `home`, `public`, `local`, `remote`, `mentions`, `tag:NAME`, `list:ID` or `account:ID`.
    pub timeline: String,
    /// The account's token there. It is sealed, and read for this account alone.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub token: Option<SecretString>,
    /// Its name among the account's; made of the address where it is left out.
    #[serde(default)]
    pub name: Option<String>,
    /// Who else may read it; `private` where it is left out.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "private")]
    pub audience: Option<Audience>,
}

/// What is to change of a source; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnSourceChange {
    /// Its name among the account's.
    #[serde(default)]
    pub name: Option<String>,
    /// Who else may read it.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "members")]
    pub audience: Option<Audience>,
    /// Whether it is paused.
    #[serde(default)]
    pub paused: Option<bool>,
    /// Another token of the account there.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub token: Option<SecretString>,
}

/// The account's own sources.
#[utoipa::path(
    get, path = "/api/driftline/v1/sources", tag = "lists",
    security(("account" = ["read:lists"])),
    responses(
        (status = 200, body = [OwnSource]),
    )
)]
async fn list(caller: LoggedIn<needs::ReadLists>) -> JsonResult<Vec<OwnSource>> {
    let sources = caller.app.mirror.own_sources(caller.account.id).await?;
    Ok(Json(sources))
}

/// Adds a source for the account.
///
/// Its timeline is requested once, so that one that cannot be read is refused. To show it to the world needs the scope
/// `driftline:publish` too, and the operator's permission.
#[utoipa::path(
    post, path = "/api/driftline/v1/sources", tag = "lists",
    request_body = NewOwnSource,
    security(("account" = ["driftline:sources"])),
    responses(
        (status = 200, body = OwnSource),
        (status = 400, body = Problem, description = "It cannot be read so, or the account has as many as it may have"),
        (status = 422, body = Problem, description = "The token belongs to no account, or the source's server does not show the timeline; the message says why"),
    )
)]
async fn add(
    caller: LoggedIn<needs::Sources>,
    body: Result<Json<NewOwnSource>, JsonRejection>,
) -> JsonResult<OwnSource> {
    let Json(new) = body.map_err(unreadable)?;
    if new.audience == Some(Audience::Public) {
        caller.check::<needs::Publish>()?;
    }
    let mirror = &caller.app.mirror;
    let added = mirror.add_own_source(caller.account.id, new).await;
    Ok(Json(added.map_err(refused)?))
}

/// A source of the account.
#[utoipa::path(
    get, path = "/api/driftline/v1/sources/{id}", tag = "lists",
    params(("id" = ids::SourceId, Path)),
    security(("account" = ["read:lists"])),
    responses(
        (status = 200, body = OwnSource),
        (status = 404, body = Problem, description = "The account has no such source"),
    )
)]
async fn show(caller: LoggedIn<needs::ReadLists>, PathId(id): PathId) -> JsonResult<OwnSource> {
    let all = caller.app.mirror.own_sources(caller.account.id).await?;
    found(all.into_iter().find(|source| source.id == id.to_string()))
}

/// Changes a source of the account.
///
/// To show it to the world needs the scope `driftline:publish` too, and the operator's permission.
#[utoipa::path(
    patch, path = "/api/driftline/v1/sources/{id}", tag = "lists",
    params(("id" = ids::SourceId, Path)),
    request_body = OwnSourceChange,
    security(("account" = ["driftline:sources"])),
    responses(
        (status = 200, body = OwnSource),
        (status = 400, body = Problem, description = "It cannot be so"),
        (status = 404, body = Problem, description = "The account has no such source"),
        (status = 422, body = Problem, description = "The token belongs to no account, or the source's server does not show the timeline; the message says why"),
    )
)]
async fn change(
    caller: LoggedIn<needs::Sources>,
    PathId(id): PathId,
    body: Result<Json<OwnSourceChange>, JsonRejection>,
) -> JsonResult<OwnSource> {
    let Json(change) = body.map_err(unreadable)?;
    if change.audience == Some(Audience::Public) {
        caller.check::<needs::Publish>()?;
    }
    let mirror = &caller.app.mirror;
    let changed = mirror.change_own_source(caller.account.id, OwnSourceId(id), change);
    found(changed.await.map_err(refused)?)
}

/// Removes a source of the account, with the posts that only it has.
#[utoipa::path(
    delete, path = "/api/driftline/v1/sources/{id}", tag = "lists",
    params(("id" = ids::SourceId, Path)),
    security(("account" = ["driftline:sources"])),
    responses(
        (status = 204),
        (status = 404, body = Problem, description = "The account has no such source"),
    )
)]
async fn remove(caller: LoggedIn<needs::Sources>, PathId(id): PathId) -> ApiResult<StatusCode> {
    let (account, source) = (caller.account.id, OwnSourceId(id));
    match caller.app.mirror.remove_own_source(account, source).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::NotFound),
    }
}

/// Without the text, which may hold a token.
#[expect(clippy::needless_pass_by_value, reason = "as an argument of `map_err`")]
fn unreadable(rejection: JsonRejection) -> ApiError {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge("At most 16 KiB"),
        _ => ApiError::BadParameter(
            "The body is no JSON object with the fields of a source; see /api/openapi.json".into(),
        ),
    }
}

/// A server that does not show the timeline is no fault of this one: who chose it is told why.
fn refused(error: driftline_runtime::CommandError) -> ApiError {
    if error.usage || error.outage {
        return error.into();
    }
    ApiError::Unprocessable(error.to_string())
}

const MAX_BODY_BYTES: usize = 16 * 1024;
