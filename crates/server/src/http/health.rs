//! What those who run the server ask it.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;

use super::{App, error::ApiError};
use crate::{clock::now_ms, source_health::StalledSource, span::show_ms, store_probe::StoreProbe};

/// The process answers.
pub(super) async fn live() -> &'static str {
    "ok"
}

/// The process has begun its work, and the store can be read and written.
///
/// The first line says so, or what is wrong. Then come the sources that stand still, by name for the
/// operator and as a number for others: they tell what is followed. No upstream makes the process
/// unready, or all would be shown to be down because of one.
pub(super) async fn ready(
    State(app): State<Arc<App>>,
    Extension(probe): Extension<StoreProbe>,
    headers: HeaderMap,
) -> Response {
    let checked = if *app.ready.borrow() {
        let probed = probe.check().await.map_err(|error| error.to_string());
        probed.and_then(|()| match app.sources.store_fails() {
            Some(error) => Err(format!("The store cannot be written: {error}")),
            None => Ok(()),
        })
    } else {
        Err("The server is still starting, or ending".to_owned())
    };
    let still = app.sources.stalled_sources(now_ms());
    let is_operator = app.gate.admits(&headers, app.public_base.as_ref()).is_ok();
    let (status, mut text) = match checked {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        // What a database says may name its files and hosts.
        Err(error) if is_operator => (StatusCode::SERVICE_UNAVAILABLE, error),
        Err(error) => {
            let what = error.split(':').next().unwrap_or_default();
            (StatusCode::SERVICE_UNAVAILABLE, what.to_owned())
        }
    };
    text.push_str(&told_of(&still, is_operator));
    (status, text).into_response()
}

fn told_of(still: &[StalledSource], is_operator: bool) -> String {
    if still.is_empty() {
        return String::new();
    }
    if !is_operator {
        return format!("\nsources that stand still: {}", still.len());
    }
    let now = now_ms();
    still
        .iter()
        .map(|source| {
            let for_ms = now.saturating_sub(source.since_ms);
            let (name, reason) = (&source.name, &source.reason);
            format!("\n{name} stands still for {}: {reason}", show_ms(for_ms))
        })
        .collect()
}

/// The metrics in Prometheus' text form.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let metrics = app.metrics.as_ref().ok_or(ApiError::NotFound)?;
    Ok(rendered(metrics))
}

pub(crate) fn rendered(metrics: &PrometheusHandle) -> Response {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], metrics.render()).into_response()
}

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_stand_still_are_named_to_the_operator_alone() {
        assert_eq!(told_of(&[], true), "");
        let still = |name: &str| StalledSource {
            name: name.to_owned(),
            since_ms: now_ms() - 35_000,
            reason: "no token".to_owned(),
        };
        let still = [still("a"), still("b")];
        let text = told_of(&still, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with("a stands still for 35"), "{text}");
        assert!(lines[2].ends_with(": no token"), "{text}");
        assert_eq!(told_of(&still, false), "\nsources that stand still: 2");
    }
}
