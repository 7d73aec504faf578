//! Mastodon's streams: what comes into the public timeline, into lists and into home timelines, and
//! notifications, as server-sent events and over WebSockets. They tell nothing that was stored before they began: a client that was away
//! pages up by `min_id`.

mod channel;
mod follower;
mod message;
mod sse;
mod web_socket;

use std::sync::Arc;

use axum::{Router, routing::get};

pub(crate) use message::StatusJson;

use crate::App;

/// The routes that Mastodon documents.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/streaming", get(web_socket::connect))
        .route("/api/v1/streaming/", get(web_socket::connect))
        .route("/api/v1/streaming/health", get(async || "OK"))
        .route("/api/v1/streaming/public", get(sse::public))
        .route("/api/v1/streaming/public/local", get(sse::local))
        .route("/api/v1/streaming/public/remote", get(sse::public))
        .route("/api/v1/streaming/list", get(sse::list))
        .route("/api/v1/streaming/user", get(sse::user))
        .route(
            "/api/v1/streaming/user/notification",
            get(sse::user_notifications),
        )
}
