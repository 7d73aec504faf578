//! The paths that the server answers.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Query, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use driftline_core::api::Api;
use serde::Deserialize;
use tower_http::normalize_path::NormalizePath;

use super::{
    answers::{add_date, ok},
    mastodon,
    refusal::{Refusal, refuse},
    sim::Sim,
    streams,
    timeline::Timeline,
    twitter, x,
};
use crate::faults_config::FaultsConfig;

/// Paths may end with a slash, as Mastodon's may.
pub(crate) fn router(sim: Arc<Sim>) -> Router {
    // A layer of the router itself would come after the route is chosen.
    Router::new().fallback_service(NormalizePath::trim_trailing_slash(routes(sim)))
}

fn routes(sim: Arc<Sim>) -> Router {
    let api = match sim.api() {
        Api::Mastodon => mastodon::routes().merge(streams::routes()),
        Api::X => x::routes(),
        Api::Twitter => twitter::routes(),
    };
    api.route("/_sim/truth", get(truth))
        .route("/_sim/faults", get(faults).put(change_faults))
        .fallback(async |State(sim): State<Arc<Sim>>| refuse(sim.api(), &Refusal::NoSuchPath))
        .layer(middleware::from_fn_with_state(Arc::clone(&sim), dated))
        .with_state(sim)
}

#[derive(Deserialize)]
struct Which {
    timeline: Option<String>,
}

/// `?timeline=home|public|tag/NAME|list/NUMBER|account/NUMBER`; home if none
/// is named. Neither counted nor spoilt.
async fn truth(State(sim): State<Arc<Sim>>, Query(which): Query<Which>) -> Response {
    let name = which.timeline.as_deref().unwrap_or("home");
    let truth = Timeline::named(name).and_then(|timeline| sim.truth(&timeline));
    match truth.map(|truth| serde_json::to_string(&truth)) {
        Some(Ok(body)) => ok(&body),
        _ => refuse(sim.api(), &Refusal::NotFound),
    }
}

/// The current fault knobs. Neither counted nor spoilt.
async fn faults(State(sim): State<Arc<Sim>>) -> Json<FaultsConfig> {
    Json(sim.faults_config())
}

/// Sets them all; knobs that are left out go back to their defaults.
async fn change_faults(State(sim): State<Arc<Sim>>, Json(config): Json<FaultsConfig>) {
    sim.change_faults(|faults| *faults = config);
}

async fn dated(State(sim): State<Arc<Sim>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    add_date(&sim, response.headers_mut());
    response
}
