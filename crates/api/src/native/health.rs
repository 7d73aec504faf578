//! Health checks and metrics, for operators.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use driftline_runtime::{FailingSource, LowDisk, StalledSource, StoreProbe, now_ms, show_ms};
use driftline_store::{source, timeline::Viewer};

use crate::{
    App,
    auth::{Operator, ViewedBy},
    transport::{ApiError, Problem, rendered},
};

/// Whether the process runs.
#[utoipa::path(
    get, path = "/livez", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub(crate) async fn live() -> &'static str {
    "ok"
}

/// Whether the process is ready and the store can be read and written.
///
/// The first line is `ok` or the error. A disk without room for more posts comes next: readers are served
/// on. Then come the stalled sources and those that fail, by name for
/// the operator and as numbers for other clients, since their names reveal what is followed; those of accounts as
/// numbers for the operator, too. Upstream
/// failures never make the process unready: one upstream would take all instances out of service.
#[utoipa::path(
    get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 503, body = String, content_type = "text/plain")),
)]
pub(crate) async fn ready(
    State(app): State<Arc<App>>,
    Extension(probe): Extension<StoreProbe>,
    ViewedBy(viewer): ViewedBy,
) -> Response {
    let checked = if *app.ready.borrow() {
        let probed = probe.check().await.map_err(|error| error.to_string());
        probed.and_then(|()| match app.mirror.store_fault() {
            Some(error) => Err(format!("The store cannot be written: {error}")),
            None => Ok(()),
        })
    } else {
        Err("The server is starting or stopping".to_owned())
    };
    let now = now_ms();
    let stalled = app.mirror.stalled_sources(now);
    let failing = app.mirror.failing_sources(now);
    let is_operator = viewer == Viewer::Operator;
    let (status, mut text) = match checked {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        // A database error may name files and hosts.
        Err(error) if is_operator => (StatusCode::SERVICE_UNAVAILABLE, error),
        Err(error) => {
            let summary = error.split(':').next().unwrap_or_default();
            (StatusCode::SERVICE_UNAVAILABLE, summary.to_owned())
        }
    };
    if let Some(low) = app.mirror.low_disk() {
        text.push_str(&low_disk_line(&low, is_operator));
    }
    text.push_str(&stalled_lines(&stalled, is_operator));
    text.push_str(&failing_lines(&failing, is_operator));
    (status, text).into_response()
}

fn low_disk_line(low: &LowDisk, is_operator: bool) -> String {
    match is_operator {
        true => format!("\nintake pauses: {low}"),
        false => "\nintake pauses: the disk is nearly full".to_owned(),
    }
}

fn stalled_lines(stalled: &[StalledSource], is_operator: bool) -> String {
    let state = |source: &StalledSource| {
        let for_ms = now_ms().saturating_sub(source.since_ms);
        format!("is stalled for {}: {}", show_ms(for_ms), source.reason)
    };
    source_lines(
        "stalled",
        stalled,
        is_operator,
        |source| &source.name,
        state,
    )
}

fn failing_lines(failing: &[FailingSource], is_operator: bool) -> String {
    let state = |source: &FailingSource| {
        let for_ms = now_ms().saturating_sub(source.since_ms);
        let (count, reason) = (source.count, &source.reason);
        format!(
            "fails for {}, {count} times in a row: {reason}",
            show_ms(for_ms)
        )
    };
    source_lines(
        "failing",
        failing,
        is_operator,
        |source| &source.name,
        state,
    )
}

/// The lines of the operator's sources in a state, and the number of the others. Those may be private to their accounts,
/// and what is wrong with them would name their servers.
fn source_lines<S>(
    kind: &str,
    all: &[S],
    is_operator: bool,
    name: impl Fn(&S) -> &str,
    state: impl Fn(&S) -> String,
) -> String {
    if all.is_empty() {
        return String::new();
    }
    if !is_operator {
        return format!("\n{kind} sources: {}", all.len());
    }
    let is_own = |source: &&S| source::parts_of_name(name(source)).0.is_none();
    let own: Vec<&S> = all.iter().filter(is_own).collect();
    let of_accounts = all.len() - own.len();
    let lines = own
        .iter()
        .map(|source| format!("\n{} {}", name(source), state(source)));
    let last = (of_accounts > 0).then(|| format!("\n{kind} sources of accounts: {of_accounts}"));
    lines.chain(last).collect()
}

/// The metrics in Prometheus' text form.
#[utoipa::path(
    get, path = "/metrics", tag = "health", security(("operator" = [])),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = Problem, description = "None are recorded")),
)]
pub(crate) async fn metrics(
    _: Operator,
    State(app): State<Arc<App>>,
) -> Result<Response, ApiError> {
    let metrics = app.metrics.as_ref().ok_or(ApiError::NotFound)?;
    Ok(rendered(metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_operator_sees_the_names_of_stalled_sources() {
        assert_eq!(stalled_lines(&[], true), "");
        let source = |name: &str| StalledSource {
            name: name.to_owned(),
            since_ms: now_ms() - 35_000,
            reason: "no token".to_owned(),
        };
        let of_account = StalledSource {
            reason: "https://secret.example is away".to_owned(),
            ..source("ann/mine")
        };
        let text = stalled_lines(&[source("a"), of_account], true);
        assert!(text.ends_with("\nstalled sources of accounts: 1"), "{text}");
        assert!(!text.contains("mine") && !text.contains("secret"), "{text}");
        let stalled = [source("a"), source("b")];
        let text = stalled_lines(&stalled, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with("a is stalled for 35"), "{text}");
        assert!(lines[2].ends_with(": no token"), "{text}");
        assert_eq!(stalled_lines(&stalled, false), "\nstalled sources: 2");
    }

    #[test]
    fn only_the_operator_sees_why_sources_fail() {
        assert_eq!(failing_lines(&[], true), "");
        let source = |name: &str| FailingSource {
            name: name.to_owned(),
            since_ms: now_ms() - 35_000,
            count: 7,
            reason: "401".to_owned(),
        };
        let text = failing_lines(&[source("ann/mine")], true);
        assert_eq!(text, "\nfailing sources of accounts: 1");
        let failing = [source("a")];
        let text = failing_lines(&failing, true);
        assert!(text.starts_with("\na fails for 35"), "{text}");
        assert!(text.ends_with(", 7 times in a row: 401"), "{text}");
        assert_eq!(failing_lines(&failing, false), "\nfailing sources: 1");
    }
}
