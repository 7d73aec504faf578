use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;

/// The metrics in Prometheus' text form.
pub fn rendered(metrics: &PrometheusHandle) -> Response {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], metrics.render()).into_response()
}

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
