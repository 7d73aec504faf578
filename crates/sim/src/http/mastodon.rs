//! Mastodon's paths.

mod credentials;
mod instance;
mod look_ups;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{HOST, LINK},
    },
    response::Response,
    routing::get,
};
use driftline_core::{answer::PageRequest, api::Api, upstream_id::UpstreamId};
use serde::Deserialize;

use super::{
    answers::{add, answer, json as json_answer},
    authorization::bearer,
    refusal::{Refusal, refuse},
    sim::Sim,
    timeline::Timeline,
};
use crate::{
    quota::{Asked, Endpoint},
    status, wire,
    world::Cut,
};

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/api/v1/timelines/home", get(home))
        .route("/api/v1/timelines/public", get(public))
        .route("/api/v1/timelines/tag/{tag}", get(tag))
        .route("/api/v1/timelines/list/{id}", get(list))
        .route("/api/v1/accounts/{id}/statuses", get(account))
        .route("/api/v1/statuses", get(look_ups::several))
        .route("/api/v1/statuses/{id}", get(look_ups::one))
        .route(
            "/api/v1/accounts/verify_credentials",
            get(credentials::account),
        )
        .route(
            "/api/v1/apps/verify_credentials",
            get(credentials::application),
        )
        .route("/api/v1/instance", get(instance::first))
        .route("/api/v2/instance", get(instance::second))
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
            since_id: id(&self.since_id),
            max_id: id(&self.max_id),
            min_id: id(&self.min_id),
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
            .map_err(|_| refuse(Api::Mastodon, &Refusal::unreadable()))?;
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
        let asked = Asked {
            endpoint: timeline.as_ref().map_or(Endpoint::List, Timeline::endpoint),
            paged: self.bounds.paged(),
        };
        let verdict = self.sim.verdict(bearer(&self.headers), asked);
        answer(&self.sim, verdict, || self.right_page(timeline.as_ref())).await
    }

    fn right_page(&self, timeline: Option<&Timeline>) -> Response {
        let request = self.bounds.request();
        let token = bearer(&self.headers);
        let cut = timeline.and_then(|timeline| self.sim.cut(timeline, token, &request));
        let Some(Cut { statuses, .. }) = cut else {
            return refuse(Api::Mastodon, &Refusal::NotFound);
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

const DEFAULT_LIMIT: u16 = 20;
