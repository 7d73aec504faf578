//! What a server says about itself.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header::HOST},
    response::Response,
};
use serde_json::json;

use crate::{
    http::{answers::json as json_answer, sim::Sim},
    status,
};

pub(super) async fn first(State(sim): State<Arc<Sim>>, headers: HeaderMap) -> Response {
    let body = json!({
        "uri": status::HOST,
        "title": TITLE,
        "short_description": TITLE,
        "description": TITLE,
        "email": "",
        "version": VERSION,
        "urls": { "streaming_api": streaming(&headers) },
        "stats": { "user_count": sim.world_config().authors, "status_count": 0, "domain_count": 3 },
        "thumbnail": null,
        "languages": ["en"],
        "registrations": false,
        "approval_required": false,
        "invites_enabled": false,
        "configuration": configuration(&headers),
        "contact_account": null,
        "rules": [],
    });
    json_answer(StatusCode::OK, body.to_string())
}

pub(super) async fn second(State(sim): State<Arc<Sim>>, headers: HeaderMap) -> Response {
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
        "configuration": configuration(&headers),
        "registrations": { "enabled": false, "approval_required": false, "message": null },
        "api_versions": { "mastodon": 2 },
        "contact": { "email": "", "account": null },
        "rules": [],
    });
    json_answer(StatusCode::OK, body.to_string())
}

fn configuration(headers: &HeaderMap) -> serde_json::Value {
    json!({
        "urls": { "streaming": streaming(headers) },
        "accounts": { "max_featured_tags": 10 },
        "statuses": {
            "max_characters": 500,
            "max_media_attachments": 4,
            "characters_reserved_per_url": 23,
        },
    })
}

/// Streams are answered where everything else is.
fn streaming(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    format!("ws://{}", host.unwrap_or(status::HOST))
}

const TITLE: &str = "A simulated server";
const VERSION: &str = "4.4.0";
