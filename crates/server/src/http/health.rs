//! What those who run the server ask it.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use driftline_store::nonce;
use metrics_exporter_prometheus::PrometheusHandle;

use super::{App, error::ApiError};

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok"
}

/// The process has begun its work and the store answers a read in time.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    if !*app.ready.borrow() {
        return Err(ApiError::NotReady("The server is still starting"));
    }
    match tokio::time::timeout(READ_TIMEOUT, app.store.read(nonce)).await {
        Ok(Ok(_)) => Ok("ok"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready: the store fails");
            Err(ApiError::NotReady("The store fails"))
        }
        Err(_) => Err(ApiError::NotReady("The store does not answer in time")),
    }
}

/// The metrics in Prometheus' text form.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let metrics = app.metrics.as_ref().ok_or(ApiError::NotFound)?;
    Ok(rendered(metrics))
}

pub(crate) fn rendered(metrics: &PrometheusHandle) -> Response {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], metrics.render()).into_response()
}

const READ_TIMEOUT: Duration = Duration::from_secs(1);
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
