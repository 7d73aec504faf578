//! The paths that the server answers.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use driftline_core::api::Api;
use tower_http::normalize_path::NormalizePath;

use super::{
    answers::add_date,
    mastodon,
    refusal::{Refusal, refuse},
    sim::Sim,
    streams, twitter, x,
};

/// Paths may end with a slash, as Mastodon's may.
pub(crate) fn router(sim: Arc<Sim>) -> Router {
    // A layer of the router itself would come after the route is chosen.
    Router::new().fallback_service(NormalizePath::trim_trailing_slash(routes(sim)))
}

fn routes(sim: Arc<Sim>) -> Router {
    let api = match sim.config.api {
        Api::Mastodon => mastodon::routes().merge(streams::routes()),
        Api::X => x::routes(),
        Api::Twitter => twitter::routes(),
    };
    api.fallback(async |State(sim): State<Arc<Sim>>| refuse(sim.config.api, &Refusal::NoSuchPath))
        .layer(middleware::from_fn_with_state(Arc::clone(&sim), dated))
        .with_state(sim)
}

async fn dated(State(sim): State<Arc<Sim>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    add_date(&sim, response.headers_mut());
    response
}
