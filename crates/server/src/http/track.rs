//! Posts from elsewhere: IDs that a producer names, to be looked up and kept fresh.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Query, Request, State, rejection::JsonRejection},
    http::{
        HeaderMap, StatusCode,
        header::{HOST, ORIGIN},
    },
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::{App, error::ApiError};
use crate::admin::{AdminError, Track, track, tracked_posts};

/// `/api/v1/track`. It changes what is asked of upstreams, so no page of another site may call it
/// from a reader's browser.
pub(super) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/track", post(note).get(stands))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(app), same_site))
}

/// What became of the IDs that were named.
#[derive(Debug, Default, Serialize)]
struct Noted {
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

/// `POST`: `{"instance": "mastodon.social", "ids": ["1", "2"], "once": false}`. Once it is answered
/// with 202, the IDs are stored and will be looked up, whatever dies. Naming them again does no
/// harm.
async fn note(
    State(app): State<Arc<App>>,
    body: Result<Json<Track>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(wanted) = body.map_err(|refused| ApiError::BadParameter(refused.body_text()))?;
    let mut noted = Noted::default();
    let mut ids = wanted.ids.into_iter();
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
        noted.add(&track(&app.store, part).await?);
    }
    Ok((StatusCode::ACCEPTED, Json(noted)).into_response())
}

#[derive(Deserialize)]
struct Which {
    instance: String,
}

/// `GET ?instance=`: how many wait, how many were found, how many were not to be had.
async fn stands(
    State(app): State<Arc<App>>,
    Query(which): Query<Which>,
) -> Result<Json<serde_json::Value>, ApiError> {
    Ok(Json(tracked_posts(&app.store, &which.instance).await?))
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
            .extend(bad.take(MOST_BAD.saturating_sub(self.bad.len())));
    }
}

async fn same_site(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_foreign = text("sec-fetch-site").is_some_and(|site| site == "cross-site");
    let is_ours = match (text(ORIGIN.as_str()), text(HOST.as_str())) {
        _ if is_foreign => false,
        (None, host) => host.is_none_or(|host| is_own_name(&app, host)),
        (Some(origin), Some(host)) => {
            let origin = origin.split_once("://").map(|(_, origin)| origin);
            origin == Some(host) && is_own_name(&app, host)
        }
        (Some(_), None) => false,
    };
    if !is_ours {
        return ApiError::Forbidden("This address does not answer pages of other sites")
            .into_response();
    }
    next.run(request).await
}

/// Whether a host is this server's: another name that leads here may be another site's.
fn is_own_name(app: &App, host: &str) -> bool {
    let Ok(url) = Url::parse(&format!("http://{host}")) else {
        return false;
    };
    let public = app.public_base.as_ref().and_then(Url::host_str);
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || Some(name) == public,
        None => false,
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

const CHUNK: usize = 2_000;
const MOST_BAD: usize = 100;
/// Some million IDs.
const LARGEST_BODY: usize = 64 * 1024 * 1024;
