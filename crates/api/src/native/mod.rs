//! Driftline's own routes.

pub(crate) mod description;
pub(crate) mod health;
pub(crate) mod session;
pub mod sources;
pub(crate) mod stream;
pub(crate) mod track;

use std::sync::Arc;

use axum::{Json, Router, extract::State, routing::get};
use utoipa::openapi::OpenApi;

use crate::App;

/// The routes whose answers are compressed and which pages of other sites may ask for.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/livez", get(async || "ok"))
        .route("/metrics", get(health::metrics))
        .route("/api/openapi.json", get(described))
        .merge(stream::routes())
}

async fn described(State(app): State<Arc<App>>) -> Json<OpenApi> {
    Json(app.description.clone())
}
