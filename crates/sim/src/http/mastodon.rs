//! Mastodon's paths.

mod instance;

use std::sync::Arc;

use axum::{Router, extract::Path, http::header::LINK, response::Response, routing::get};
use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use serde_json::{Value, json};

use super::{
    answers::{add, ok, ok_bytes},
    refusal::{Refusal, refuse},
    request::{ApiRequest, Params, reader},
    sim::Sim,
    timeline::Timeline,
};
use crate::{
    quota::{Endpoint, RequestKind},
    status::{self, SimAuthor},
    upstream::MASTODON_BATCH,
    wire,
    world::{Found, answer_order},
};

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/api/v1/timelines/{*name}", get(timeline))
        .route("/api/v1/accounts/lookup", get(named))
        .route("/api/v1/accounts/{id}/statuses", get(statuses))
        .route("/api/v1/statuses", get(several))
        .route("/api/v1/statuses/{id}", get(one))
        .route("/api/v1/statuses/{id}/context", get(context))
        .route("/api/v1/statuses/{id}/history", get(history))
        .route("/api/v1/accounts/verify_credentials", get(account))
        .route("/api/v1/apps/verify_credentials", get(application))
        .route("/api/v1/instance", get(instance::first))
        .route("/api/v2/instance", get(instance::second))
        .route("/.well-known/nodeinfo", get(instance::node_info_links))
        .route("/nodeinfo/2.0", get(instance::node_info))
}

async fn timeline(Path(name): Path<String>, request: ApiRequest) -> Response {
    let timeline = Timeline::named(&name);
    page(&request, timeline.filter(|it| *it != Timeline::Mentions)).await
}

async fn statuses(Path(id): Path<String>, request: ApiRequest) -> Response {
    page(&request, id.parse().ok().map(Timeline::Account)).await
}

async fn page(request: &ApiRequest, timeline: Option<Timeline>) -> Response {
    let kind = RequestKind {
        endpoint: timeline.as_ref().map_or(Endpoint::List, Timeline::endpoint),
        paged: request.params.has_any(&BOUNDS),
    };
    let right = || {
        let bounds = bounds(&request.params);
        let cut = timeline.and_then(|it| request.sim.cut(&it, &request.token, &bounds));
        let statuses = cut.ok_or(Refusal::NotFound)?.statuses;
        let quirks = &request.sim.config.world.quirks;
        let mut response = ok_bytes(quirks.page_body(&statuses));
        if let (Some(newest), Some(oldest)) = (statuses.first(), statuses.last()) {
            let page = format!("{}?limit={}", request.uri.path(), bounds.limit);
            if let Some(links) = quirks.links.header(request.host(), &page, newest, oldest) {
                add(response.headers_mut(), LINK, &links);
            }
        }
        Ok(response)
    };
    request.answer(kind, right).await
}

fn bounds(params: &Params) -> PageRequest {
    let limit = params.text("limit").and_then(|text| text.parse().ok());
    PageRequest {
        since_id: params.id("since_id"),
        max_id: params.id("max_id"),
        min_id: params.id("min_id"),
        limit: limit.unwrap_or(DEFAULT_LIMIT),
    }
}

async fn one(Path(id): Path<String>, request: ApiRequest) -> Response {
    let right = || match request.sim.find_one(&request.token, &UpstreamId::new(id))? {
        Found::Shown(status) => {
            let quirks = &request.sim.config.world.quirks;
            Ok(ok_bytes(quirks.look_up_body(&status)))
        }
        Found::Hidden | Found::Absent => Err(Refusal::NotFound),
    };
    request.answer_plain(Endpoint::LookUp, right).await
}

/// Nothing here replies to anything.
async fn context(Path(id): Path<String>, request: ApiRequest) -> Response {
    let right = || match request.sim.find_one(&request.token, &UpstreamId::new(id))? {
        Found::Shown(_) => Ok(ok(&json!({ "ancestors": [], "descendants": [] }))),
        Found::Hidden | Found::Absent => Err(Refusal::NotFound),
    };
    request.answer_plain(Endpoint::LookUp, right).await
}

async fn history(Path(id): Path<String>, request: ApiRequest) -> Response {
    let right = || match request.sim.find_one(&request.token, &UpstreamId::new(id))? {
        Found::Shown(status) => {
            let first = request.sim.before_edit(&status.id);
            let versions = first.into_iter().chain([*status]);
            let versions: Vec<Value> = versions.map(|of| wire::status_edit_json(&of)).collect();
            Ok(ok(&json!(versions)))
        }
        Found::Hidden | Found::Absent => Err(Refusal::NotFound),
    };
    request.answer_plain(Endpoint::LookUp, right).await
}

/// `?id[]=1&id[]=2`, in whatever way the brackets are written.
async fn several(request: ApiRequest) -> Response {
    let sim = &request.sim;
    let right = || {
        sim.check_batches()?;
        let ids = request.params.texts(&["id[]", "id"]).map(UpstreamId::from);
        let ids = answer_order(&ids.collect::<Vec<_>>(), false);
        if ids.len() > usize::from(sim.config.world.batches.most.unwrap_or(MASTODON_BATCH)) {
            let message = "Validation failed: too many statuses were asked for";
            return Err(Refusal::Unprocessable(message.to_owned()));
        }
        let found = sim.find_several(&request.token, &ids)?.into_iter();
        let statuses: Vec<_> = found.filter_map(|(_, found)| found.shown()).collect();
        Ok(ok_bytes(sim.config.world.quirks.look_ups_body(&statuses)))
    };
    request.answer_plain(Endpoint::LookUps, right).await
}

async fn account(request: ApiRequest) -> Response {
    let mut account = wire::account_json(&reader());
    account["source"] = json!({
        "privacy": "public",
        "sensitive": false,
        "language": null,
        "note": "",
        "fields": [],
        "follow_requests_count": 0,
    });
    account["role"] = json!({ "id": "-99", "name": "", "permissions": "0", "color": "" });
    verified(&request, &account).await
}

async fn application(request: ApiRequest) -> Response {
    let application = json!({
        "id": "1",
        "name": "Simulated application",
        "website": null,
        "scopes": ["read"],
        "redirect_uris": ["urn:ietf:wg:oauth:2.0:oob"],
        "vapid_key": "",
    });
    verified(&request, &application).await
}

/// The account of the server's own that `acct` names.
async fn named(request: ApiRequest) -> Response {
    let right = || {
        let acct = request.params.text("acct").unwrap_or_default();
        let name = acct
            .split_once('@')
            .map_or(acct, |(name, host)| match host {
                status::HOST => name,
                _ => "",
            });
        let number = name
            .strip_prefix("drifter")
            .and_then(|text| text.parse().ok());
        let author = SimAuthor {
            id: number.ok_or(Refusal::NotFound)?,
            name: name.to_owned(),
            host: None,
        };
        Ok(ok(&wire::account_json(&author)))
    };
    request.answer_plain(Endpoint::Credentials, right).await
}

/// Whom a token belongs to.
async fn verified(request: &ApiRequest, whom: &Value) -> Response {
    if request.token.is_empty() {
        return refuse(request.sim.config.api, &Refusal::Unauthorized);
    }
    request
        .answer_plain(Endpoint::Credentials, || Ok(ok(whom)))
        .await
}

const BOUNDS: [&str; 3] = ["since_id", "max_id", "min_id"];
const DEFAULT_LIMIT: u16 = 20;
