//! Posts from elsewhere: IDs that a producer names, to be looked up and kept fresh.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Json, Router,
    extract::{
        DefaultBodyLimit, Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{App, description::Problem, error::ApiError};
use crate::admin::{AdminError, Track, track, tracked_posts};

/// `/api/v1/track`. It changes what is asked of upstreams, so not everybody may call it.
pub(super) fn routes(app: &App) -> Router<Arc<App>> {
    let routes = Router::new()
        .route("/api/v1/track", post(note).get(stands))
        .layer(DefaultBodyLimit::max(LARGEST_BODY));
    app.gate.guard(routes, app.public_base.clone())
}

/// What became of the IDs that were named.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct Noted {
    /// The source that holds the posts.
    source: String,
    /// How many IDs were named.
    named: u64,
    /// Those that will be looked up.
    new: u64,
    /// Those whose post is stored already.
    stored: u64,
    /// Those that were named before, and wait or were not to be had.
    waiting_or_missing: u64,
    /// Those that stood in the request before.
    repeated: u64,
    /// What cannot be an ID; the first hundred of them.
    bad: Vec<String>,
}

/// How the posts stand that were named at a server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stands {
    /// The source that holds them.
    source: String,
    /// How many wait to be looked up.
    waiting: u64,
    /// How many were looked up and not to be had.
    missing: u64,
    /// How many were found.
    found: u64,
}

/// Names posts to be looked up and kept fresh.
///
/// Once it is answered with 202, the IDs are stored and will be looked up, whatever dies. Naming
/// them again does no harm.
#[utoipa::path(
    post,
    path = "/api/v1/track",
    request_body = Track,
    security((), ("operator" = [])),
    responses(
        (status = 202, body = Noted),
        (status = 400, body = Problem, description = "The request makes no sense"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
        (status = 403, body = Problem, description = "Not for pages of other sites, or a token is needed and the server has none"),
        (status = 413, body = Problem, description = "More than 100000 IDs, or 16 MiB"),
    )
)]
pub(super) async fn note(
    State(app): State<Arc<App>>,
    body: Result<Json<Track>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(wanted) = body.map_err(|refused| match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge(TOO_LARGE),
        _ => ApiError::BadParameter(refused.body_text()),
    })?;
    if wanted.ids.len() > MAX_IDS {
        return Err(ApiError::TooLarge(TOO_LARGE));
    }
    let mut ids = wanted.ids;
    let mut once = HashSet::new();
    let all = ids.len();
    ids.retain(|id| once.insert(id.trim().to_owned()));
    drop(once);
    let repeated = (all - ids.len()) as u64;
    let mut noted = Noted {
        named: repeated,
        repeated,
        ..Noted::default()
    };
    let mut ids = ids.into_iter();
    // A request of many IDs must not hold the one writer up.
    loop {
        let part: Vec<String> = ids.by_ref().take(CHUNK).collect();
        if part.is_empty() && !noted.source.is_empty() {
            break;
        }
        let part = Track {
            ids: part,
            instance: wanted.instance.clone(),
            api: wanted.api,
            once: wanted.once,
        };
        noted.add(&track(&app.store, &app.policies, part).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(noted)).into_response())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The server's address, or the host of one that is known.
    instance: String,
}

/// How the posts stand that were named at a server.
#[utoipa::path(
    get,
    path = "/api/v1/track",
    params(Which),
    security((), ("operator" = [])),
    responses(
        (status = 200, body = Stands),
        (status = 400, body = Problem, description = "No posts of that server were named"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
    )
)]
pub(super) async fn stands(
    State(app): State<Arc<App>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Stands>, ApiError> {
    let which = which.ok().filter(|which| !which.instance.is_empty());
    let Query(which) = which.ok_or_else(|| ApiError::BadParameter(NO_INSTANCE.into()))?;
    let stands = tracked_posts(&app.store, &which.instance).await?;
    let number = |key: &str| stands[key].as_u64().unwrap_or(0);
    Ok(Json(Stands {
        source: stands["source"].as_str().unwrap_or_default().to_owned(),
        waiting: number("waiting"),
        missing: number("missing"),
        found: number("found"),
    }))
}

impl Noted {
    fn add(&mut self, part: &serde_json::Value) {
        let number = |key: &str| part[key].as_u64().unwrap_or(0);
        self.source = part["source"].as_str().unwrap_or_default().to_owned();
        self.named += number("named");
        self.new += number("new");
        self.stored += number("stored");
        self.waiting_or_missing += number("waiting_or_missing");
        self.repeated += number("repeated");
        let bad = part["bad"].as_array().into_iter().flatten();
        let bad = bad.filter_map(|id| id.as_str()).map(str::to_owned);
        self.bad
            .extend(bad.take(MAX_BAD.saturating_sub(self.bad.len())));
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        if error.usage {
            return Self::BadParameter(error.message);
        }
        tracing::error!(%error, "a request was not carried out");
        Self::Internal
    }
}

const NO_INSTANCE: &str =
    "The server whose posts were named is missing; write ?instance=https://mastodon.example";
const CHUNK: usize = 2_000;
const MAX_BAD: usize = 100;
/// What a request may take of memory is bounded: longer lists come in several.
const MAX_IDS: usize = 100_000;
const LARGEST_BODY: usize = 16 * 1024 * 1024;
const TOO_LARGE: &str =
    "A request names at most 100000 IDs and has at most 16 MiB; send the rest in another";
