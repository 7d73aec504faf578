//! Whom a token belongs to.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use driftline_core::api::Api;
use serde_json::{Value, json};

use crate::{
    http::{
        answers::{answer, json as json_answer},
        authorization::{bearer, reader},
        refusal::{Refusal, refuse},
        sim::Sim,
    },
    quota::{Asked, Endpoint},
    wire,
};

pub(super) async fn account(State(sim): State<Arc<Sim>>, headers: HeaderMap) -> Response {
    verified(&sim, &headers, || {
        let mut account: Value =
            serde_json::from_str(&wire::account_json(&reader())).unwrap_or_default();
        account["source"] = json!({
            "privacy": "public",
            "sensitive": false,
            "language": null,
            "note": "",
            "fields": [],
            "follow_requests_count": 0,
        });
        account["role"] = json!({ "id": "-99", "name": "", "permissions": "0", "color": "" });
        account
    })
    .await
}

pub(super) async fn application(State(sim): State<Arc<Sim>>, headers: HeaderMap) -> Response {
    verified(&sim, &headers, || {
        json!({
            "id": "1",
            "name": "Simulated application",
            "website": null,
            "scopes": ["read"],
            "redirect_uris": ["urn:ietf:wg:oauth:2.0:oob"],
            "vapid_key": "",
        })
    })
    .await
}

async fn verified(sim: &Arc<Sim>, headers: &HeaderMap, right: impl FnOnce() -> Value) -> Response {
    let token = bearer(headers);
    if token.is_empty() {
        return refuse(Api::Mastodon, &Refusal::Unauthorized);
    }
    let verdict = sim.verdict(token, Asked::plain(Endpoint::Credentials));
    answer(sim, verdict, || {
        json_answer(StatusCode::OK, right().to_string())
    })
    .await
}
