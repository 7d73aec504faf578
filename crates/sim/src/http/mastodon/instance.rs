//! What a server says about itself.

use axum::response::Response;
use serde_json::json;

use crate::{
    http::{answers::ok, request::ApiRequest},
    status,
};

pub(super) async fn first(request: ApiRequest) -> Response {
    let authors = request.sim.config.world.authors;
    ok(&json!({
        "uri": status::HOST,
        "title": TITLE,
        "short_description": TITLE,
        "description": TITLE,
        "email": "",
        "version": VERSION,
        "urls": { "streaming_api": streaming(&request) },
        "stats": { "user_count": authors, "status_count": 0, "domain_count": 3 },
        "thumbnail": null,
        "languages": ["en"],
        "registrations": false,
        "approval_required": false,
        "invites_enabled": false,
        "configuration": configuration(&request),
        "contact_account": null,
        "rules": [],
    }))
}

pub(super) async fn second(request: ApiRequest) -> Response {
    let authors = request.sim.config.world.authors;
    ok(&json!({
        "domain": status::HOST,
        "title": TITLE,
        "version": VERSION,
        "source_url": "https://github.com/mastodon/mastodon",
        "description": TITLE,
        "usage": { "users": { "active_month": authors } },
        "thumbnail": { "url": format!("https://{}/thumbnail.png", status::HOST) },
        "icon": [],
        "languages": ["en"],
        "configuration": configuration(&request),
        "registrations": { "enabled": false, "approval_required": false, "message": null },
        "api_versions": { "mastodon": 2 },
        "contact": { "email": "", "account": null },
        "rules": [],
    }))
}

pub(super) async fn node_info_links(request: ApiRequest) -> Response {
    let host = request.host();
    ok(&json!({ "links": [{
        "rel": "http://nodeinfo.diaspora.software/ns/schema/2.0",
        "href": format!("http://{host}/nodeinfo/2.0"),
    }] }))
}

pub(super) async fn node_info(_: ApiRequest) -> Response {
    ok(&json!({
        "version": "2.0",
        "software": { "name": "driftline-sim", "version": env!("CARGO_PKG_VERSION") },
        "protocols": ["activitypub"],
        "services": { "inbound": [], "outbound": [] },
        "openRegistrations": false,
        "usage": { "users": {} },
        "metadata": { "maintainer": { "name": MAINTAINER } },
    }))
}

fn configuration(request: &ApiRequest) -> serde_json::Value {
    json!({
        "urls": { "streaming": streaming(request) },
        "accounts": { "max_featured_tags": 10 },
        "statuses": {
            "max_characters": 500,
            "max_media_attachments": 4,
            "characters_reserved_per_url": 23,
        },
    })
}

/// Streams are answered where everything else is.
fn streaming(request: &ApiRequest) -> String {
    format!("ws://{}", request.host())
}

const TITLE: &str = "A simulated server";
const MAINTAINER: &str = "Nobody";
const VERSION: &str = "4.4.0";
