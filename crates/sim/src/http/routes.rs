//! The paths that the server answers.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{AUTHORIZATION, HOST, LINK},
    },
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use serde::Deserialize;
use serde_json::json;

use super::{
    answers::{add, add_date, answer, error, json as json_answer},
    sim::Sim,
    timeline::Timeline,
};
use crate::{status, wire};

pub(crate) fn router(sim: Arc<Sim>) -> Router {
    Router::new()
        .route("/api/v1/timelines/home", get(home))
        .route("/api/v1/timelines/public", get(public))
        .route("/api/v1/timelines/tag/{tag}", get(tag))
        .route("/api/v1/timelines/list/{id}", get(list))
        .route("/api/v1/accounts/{id}/statuses", get(account))
        .route("/api/v1/statuses/{id}", get(one_status))
        .route("/api/v1/instance", get(instance_v1))
        .route("/api/v2/instance", get(instance_v2))
        .route("/_sim/truth", get(truth))
        .fallback(async || {
            error(
                StatusCode::NOT_FOUND,
                "The page you are looking for isn't here.",
            )
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&sim), dated))
        .with_state(sim)
}

#[derive(Debug, Default, Deserialize)]
struct Bounds {
    since_id: Option<String>,
    max_id: Option<String>,
    min_id: Option<String>,
    limit: Option<String>,
}

impl Bounds {
    fn request(&self) -> PageRequest {
        let id = |text: &Option<String>| {
            text.as_deref()
                .filter(|text| !text.is_empty())
                .map(UpstreamId::from)
        };
        PageRequest {
            since: id(&self.since_id),
            below: id(&self.max_id),
            just_above: id(&self.min_id),
            limit: self
                .limit
                .as_deref()
                .map_or(DEFAULT_LIMIT, |text| text.parse().unwrap_or(DEFAULT_LIMIT)),
        }
    }

    fn paged(&self) -> bool {
        self.since_id.is_some() || self.max_id.is_some() || self.min_id.is_some()
    }
}

/// What a page's handler needs of a request.
struct Ask {
    sim: Arc<Sim>,
    bounds: Bounds,
    headers: HeaderMap,
    uri: Uri,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Ask
where
    Arc<Sim>: axum::extract::FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, Response> {
        let Query(bounds) = Query::try_from_uri(&parts.uri)
            .map_err(|_| error(StatusCode::BAD_REQUEST, "The query cannot be read"))?;
        Ok(Self {
            sim: axum::extract::FromRef::from_ref(state),
            bounds,
            headers: parts.headers.clone(),
            uri: parts.uri.clone(),
        })
    }
}

impl Ask {
    async fn page(self, timeline: Option<Timeline>) -> Response {
        self.sim.count(|traffic| traffic.page_requests += 1);
        let verdict = self.sim.verdict(token(&self.headers), self.bounds.paged());
        answer(&self.sim, verdict, || self.right_page(timeline.as_ref())).await
    }

    fn right_page(&self, timeline: Option<&Timeline>) -> Response {
        let request = self.bounds.request();
        let page = timeline.and_then(|timeline| self.sim.page(timeline, &request));
        let Some(statuses) = page else {
            return error(StatusCode::NOT_FOUND, "Record not found");
        };
        let mut response = json_answer(StatusCode::OK, wire::page_json(&statuses));
        if let (Some(newest), Some(oldest)) = (statuses.first(), statuses.last()) {
            let host = self
                .headers
                .get(HOST)
                .and_then(|host| host.to_str().ok())
                .unwrap_or(status::HOST);
            let base = format!("http://{host}{}?limit={}", self.uri.path(), request.limit);
            let links = format!(
                "<{base}&max_id={}>; rel=\"next\", <{base}&min_id={}>; rel=\"prev\"",
                oldest.id, newest.id
            );
            add(response.headers_mut(), LINK, &links);
        }
        response
    }
}

async fn home(ask: Ask) -> Response {
    ask.page(Some(Timeline::Home)).await
}

async fn public(ask: Ask) -> Response {
    ask.page(Some(Timeline::Public)).await
}

async fn tag(Path(tag): Path<String>, ask: Ask) -> Response {
    ask.page(Some(Timeline::Tag(tag))).await
}

async fn list(Path(id): Path<String>, ask: Ask) -> Response {
    ask.page(id.parse().ok().map(Timeline::List)).await
}

async fn account(Path(id): Path<String>, ask: Ask) -> Response {
    ask.page(id.parse().ok().map(Timeline::Account)).await
}

async fn one_status(
    State(sim): State<Arc<Sim>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    sim.count(|traffic| traffic.look_ups += 1);
    let verdict = sim.verdict(token(&headers), false);
    answer(&sim, verdict, || match sim.look_up(&UpstreamId::new(id)) {
        Some(status) => json_answer(StatusCode::OK, status.to_json()),
        None => error(StatusCode::NOT_FOUND, "Record not found"),
    })
    .await
}

async fn instance_v1(State(sim): State<Arc<Sim>>) -> Response {
    let body = json!({
        "uri": status::HOST,
        "title": TITLE,
        "short_description": TITLE,
        "description": TITLE,
        "email": "",
        "version": VERSION,
        "urls": {},
        "stats": { "user_count": sim.world_config().authors, "status_count": 0, "domain_count": 3 },
        "thumbnail": null,
        "languages": ["en"],
        "registrations": false,
        "approval_required": false,
        "invites_enabled": false,
        "configuration": configuration(),
        "contact_account": null,
        "rules": [],
    });
    json_answer(StatusCode::OK, body.to_string())
}

async fn instance_v2(State(sim): State<Arc<Sim>>) -> Response {
    let body = json!({
        "domain": status::HOST,
        "title": TITLE,
        "version": VERSION,
        "source_url": "https://github.com/mastodon/mastodon",
        "description": TITLE,
        "usage": { "users": { "active_month": sim.world_config().authors } },
        "thumbnail": { "url": format!("https://{}/thumbnail.png", status::HOST) },
        "icon": [],
        "languages": ["en"],
        "configuration": configuration(),
        "registrations": { "enabled": false, "approval_required": false, "message": null },
        "api_versions": { "mastodon": 2 },
        "contact": { "email": "", "account": null },
        "rules": [],
    });
    json_answer(StatusCode::OK, body.to_string())
}

fn configuration() -> serde_json::Value {
    json!({
        "urls": {},
        "accounts": { "max_featured_tags": 10 },
        "statuses": {
            "max_characters": 500,
            "max_media_attachments": 4,
            "characters_reserved_per_url": 23,
        },
    })
}

#[derive(Deserialize)]
struct Which {
    timeline: Option<String>,
}

/// `?timeline=home|public|tag/NAME|list/NUMBER|account/NUMBER`; home if none
/// is named. Neither counted nor spoilt.
async fn truth(State(sim): State<Arc<Sim>>, Query(which): Query<Which>) -> Response {
    let name = which.timeline.as_deref().unwrap_or("home");
    let truth = Timeline::named(name).and_then(|timeline| sim.truth(&timeline));
    match truth.map(|truth| serde_json::to_string(&truth)) {
        Some(Ok(body)) => json_answer(StatusCode::OK, body),
        _ => error(StatusCode::NOT_FOUND, "There is no such timeline"),
    }
}

async fn dated(State(sim): State<Arc<Sim>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    add_date(&sim, response.headers_mut());
    response
}

/// Clients without a token share one.
fn token(headers: &HeaderMap) -> &str {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or("")
}

const DEFAULT_LIMIT: u16 = 20;
const TITLE: &str = "A simulated server";
const VERSION: &str = "4.4.0";
