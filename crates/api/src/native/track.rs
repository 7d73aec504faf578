//! Tracked posts: clients submit IDs, which are looked up and kept fresh.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Json,
    extract::{
        DefaultBodyLimit, Query, State,
        rejection::{JsonRejection, QueryRejection},
    },
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use driftline_core::tracking::{Track, TrackResult, TrackedPosts};
use driftline_runtime::CommandError;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::Operator,
    transport::{ApiError, Problem},
};

/// `/api/v1/track`. It needs authorization, since it causes requests to upstreams.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(add_tracked, show_tracked))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Tracks posts: they are looked up and kept fresh.
///
/// After the answer 202 the IDs are stored durably. Sending them again does no harm.
#[utoipa::path(
    post, path = "/api/v1/track", tag = "posts",
    request_body = Track,
    security(("operator" = [])),
    responses(
        (status = 202, body = TrackResult),
        (status = 400, body = Problem, description = "Invalid request"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
        (status = 403, body = Problem, description = "From a page of another site, or a token is needed and none is configured"),
        (status = 413, body = Problem, description = "More than 100000 IDs, or 16 MiB"),
    )
)]
pub(crate) async fn add_tracked(
    _: Operator,
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
        add(&mut result, app.mirror.track(part).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(result)).into_response())
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrackedQuery {
    /// The server's address, or the host of one that is known.
    instance: String,
}

/// The tracked posts of a server, counted by state.
#[utoipa::path(
    get, path = "/api/v1/track", tag = "posts", params(TrackedQuery),
    security(("operator" = [])),
    responses(
        (status = 200, body = TrackedPosts),
        (status = 400, body = Problem, description = "No posts of that server are tracked"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
    )
)]
pub(crate) async fn show_tracked(
    _: Operator,
    State(app): State<Arc<App>>,
    query: Result<Query<TrackedQuery>, QueryRejection>,
) -> Result<Json<TrackedPosts>, ApiError> {
    let query = query.ok().filter(|query| !query.instance.is_empty());
    let Query(query) = query.ok_or_else(|| ApiError::BadParameter(NO_INSTANCE.into()))?;
    Ok(Json(app.mirror.tracked_posts(query.instance).await?))
}

fn add(result: &mut TrackResult, part: TrackResult) {
    result.source = part.source;
    result.named += part.named;
    result.new += part.new;
    result.stored += part.stored;
    result.waiting_or_missing += part.waiting_or_missing;
    result.repeated += part.repeated;
    let room = MAX_BAD.saturating_sub(result.bad.len());
    result.bad.extend(part.bad.into_iter().take(room));
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        if error.usage {
            return Self::BadParameter(error.message);
        }
        if error.outage {
            return Self::StoreAway(error.message);
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
