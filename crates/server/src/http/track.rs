//! Tracked posts: clients submit IDs, which are looked up and kept fresh.

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

/// `/api/v1/track`. It needs authorization, since it causes requests to upstreams.
pub(super) fn routes(app: &App) -> Router<Arc<App>> {
    let routes = Router::new()
        .route("/api/v1/track", post(add_tracked).get(show_tracked))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    app.authorization.guard(routes, app.public_base.clone())
}

/// The result of a request to track posts.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct TrackResult {
    /// The source that holds the posts.
    source: String,
    /// The number of IDs in the request.
    named: u64,
    /// IDs that will be looked up.
    new: u64,
    /// IDs of posts that are already stored.
    stored: u64,
    /// IDs of earlier requests whose look-up is pending or found nothing.
    waiting_or_missing: u64,
    /// Repeated IDs.
    repeated: u64,
    /// Invalid IDs; the first hundred of them.
    bad: Vec<String>,
}

/// The tracked posts of a server, counted by state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrackedPosts {
    /// The source that holds them.
    source: String,
    /// Posts with a pending look-up.
    waiting: u64,
    /// Posts that look-ups did not find.
    missing: u64,
    /// Posts that were found.
    found: u64,
}

/// Tracks posts: they are looked up and kept fresh.
///
/// After the answer 202 the IDs are stored durably. Sending them again does no harm.
#[utoipa::path(
    post,
    path = "/api/v1/track",
    request_body = Track,
    security((), ("operator" = [])),
    responses(
        (status = 202, body = TrackResult),
        (status = 400, body = Problem, description = "Invalid request"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
        (status = 403, body = Problem, description = "From a page of another site, or a token is needed and none is configured"),
        (status = 413, body = Problem, description = "More than 100000 IDs, or 16 MiB"),
    )
)]
pub(super) async fn add_tracked(
    State(app): State<Arc<App>>,
    body: Result<Json<Track>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(request) = body.map_err(|refused| match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge(TOO_LARGE),
        _ => ApiError::BadParameter(refused.body_text()),
    })?;
    if request.ids.len() > MAX_IDS {
        return Err(ApiError::TooLarge(TOO_LARGE));
    }
    let mut ids = request.ids;
    let mut once = HashSet::new();
    let all = ids.len();
    ids.retain(|id| once.insert(id.trim().to_owned()));
    drop(once);
    let repeated = (all - ids.len()) as u64;
    let mut result = TrackResult {
        named: repeated,
        repeated,
        ..TrackResult::default()
    };
    let mut ids = ids.into_iter();
    // In chunks: a request with many IDs must not block the single writer.
    loop {
        let chunk: Vec<String> = ids.by_ref().take(CHUNK).collect();
        if chunk.is_empty() && !result.source.is_empty() {
            break;
        }
        let part = Track {
            ids: chunk,
            instance: request.instance.clone(),
            api: request.api,
            once: request.once,
        };
        result.add(&track(&app.store, &app.policies, part).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(result)).into_response())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TrackedQuery {
    /// The server's address, or the host of one that is known.
    instance: String,
}

/// The tracked posts of a server, counted by state.
#[utoipa::path(
    get,
    path = "/api/v1/track",
    params(TrackedQuery),
    security((), ("operator" = [])),
    responses(
        (status = 200, body = TrackedPosts),
        (status = 400, body = Problem, description = "No posts of that server are tracked"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
    )
)]
pub(super) async fn show_tracked(
    State(app): State<Arc<App>>,
    query: Result<Query<TrackedQuery>, QueryRejection>,
) -> Result<Json<TrackedPosts>, ApiError> {
    let query = query.ok().filter(|query| !query.instance.is_empty());
    let Query(query) = query.ok_or_else(|| ApiError::BadParameter(NO_INSTANCE.into()))?;
    let tracked = tracked_posts(&app.store, &query.instance).await?;
    let number = |key: &str| tracked[key].as_u64().unwrap_or(0);
    Ok(Json(TrackedPosts {
        source: tracked["source"].as_str().unwrap_or_default().to_owned(),
        waiting: number("waiting"),
        missing: number("missing"),
        found: number("found"),
    }))
}

impl TrackResult {
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
        tracing::error!(%error, "a command failed");
        Self::Internal
    }
}

const NO_INSTANCE: &str = "instance is missing; write ?instance=https://mastodon.example";
const CHUNK: usize = 2_000;
const MAX_BAD: usize = 100;
/// Bounds the memory of a request; longer lists take several.
const MAX_IDS: usize = 100_000;
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
const TOO_LARGE: &str =
    "At most 100000 IDs and 16 MiB per request; send the rest in another request";
