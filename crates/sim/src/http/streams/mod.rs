//! Mastodon's streams: server-sent events and WebSockets.

mod channel;
mod feed;
mod sse;
mod web_socket;

use std::sync::Arc;

use axum::{Router, routing::get};

use super::sim::Sim;

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/api/v1/streaming", get(web_socket::upgrade))
        .route("/api/v1/streaming/", get(web_socket::upgrade))
        .route("/api/v1/streaming/health", get(async || "OK"))
        .route("/api/v1/streaming/{*name}", get(sse::open))
}
