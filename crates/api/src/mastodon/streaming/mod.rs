//! Mastodon's streams: what comes into the public timeline, into lists and into home timelines, and
//! notifications, as server-sent events and over WebSockets. They tell nothing that was stored before they began: a client that was away
//! pages up by `min_id`.

mod channel;
mod follower;
pub(crate) mod message;
mod sse;
mod web_socket;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes that Mastodon documents.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(web_socket::connect))
        .routes(routes!(web_socket::connect_below))
        .routes(routes!(health))
        .routes(routes!(sse::public))
        .routes(routes!(sse::local))
        .routes(routes!(sse::remote))
        .routes(routes!(sse::list))
        .routes(routes!(sse::user))
        .routes(routes!(sse::user_notifications))
}

/// Whether streams are served.
#[utoipa::path(
    get, path = "/api/v1/streaming/health", tag = "streaming", security(()),
    responses((status = 200, body = String, content_type = "text/plain")),
)]
async fn health() -> &'static str {
    "OK"
}
