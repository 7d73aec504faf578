//! Responses, right and wrong.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap},
    },
    response::{IntoResponse, Response},
};
use driftline_core::{answer::Throttle, api::Api};
use futures_util::{StreamExt, stream};

use super::{
    json_answer::{JSON, json},
    refusal::{Refusal, Silence, refuse},
    sim::{Sim, lock},
};
use crate::{
    faults::{Decision, Fault},
    faults_config::FaultKind,
    wire::iso_8601,
};

/// Answers a request as was decided; `right` makes the right answer.
pub(crate) async fn answer(
    sim: &Arc<Sim>,
    decision: Decision,
    right: impl FnOnce() -> Response,
) -> Response {
    let mut response = match decision.fault {
        None => right(),
        Some(Fault {
            kind: FaultKind::Delay,
            hold_ms,
        }) => {
            // Read first: a late answer shows the past.
            let response = right();
            sim.hold(hold_ms).await;
            response
        }
        Some(fault) => {
            sim.count(|traffic| traffic.failures += 1);
            wrong(sim, fault, right).await
        }
    };
    if response.extensions().get::<Silence>().is_some() {
        sim.hold(sim.faults_config().stall_ms.max).await;
        response = broken_before_head();
    }
    add_throttle(response.headers_mut(), decision.throttle, sim.config.api);
    response
}

/// The right answer with this JSON.
pub(crate) fn ok(body: &(impl ToString + ?Sized)) -> Response {
    json(StatusCode::OK, body.to_string())
}

/// The right answer with this JSON, whether it can be read or not.
pub(crate) fn ok_bytes(body: Vec<u8>) -> Response {
    (StatusCode::OK, [(CONTENT_TYPE, JSON)], body).into_response()
}

/// The front end's `Date`, on every answer. One that cannot be read stands for none, since the
/// server would add its own.
pub(crate) fn add_date(sim: &Sim, headers: &mut HeaderMap) {
    if sim.config.world.quirks.no_date {
        return add(headers, DATE, "-");
    }
    let date_ms = lock(&sim.faults).date_ms(sim.clock.now_ms());
    let Some(date_ms) = date_ms else { return };
    let since_epoch = Duration::from_millis(u64::try_from(date_ms).unwrap_or(0));
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + since_epoch);
    add(headers, DATE, &date);
}

/// Sets a header; a value that no header can hold is left out.
pub(crate) fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

async fn wrong(sim: &Arc<Sim>, fault: Fault, right: impl FnOnce() -> Response) -> Response {
    let api = sim.config.api;
    match fault.kind {
        FaultKind::Throttled => refuse(api, &Refusal::Throttled),
        FaultKind::InternalError => refuse(api, &Refusal::Internal),
        FaultKind::Unauthorized => refuse(api, &Refusal::Unauthorized),
        FaultKind::BadGateway => html(StatusCode::BAD_GATEWAY),
        FaultKind::Unavailable => html(StatusCode::SERVICE_UNAVAILABLE),
        FaultKind::Html => html(StatusCode::OK),
        FaultKind::ErrorObject => {
            let mut response = refuse(api, &Refusal::Internal);
            *response.status_mut() = StatusCode::OK;
            response
        }
        FaultKind::BadJson => ok(r#"[1, "two", null]"#),
        FaultKind::EmptyPage => match api {
            Api::Mastodon | Api::Twitter => ok("[]"),
            Api::X => ok(r#"{"meta":{"result_count":0}}"#),
        },
        FaultKind::Stall => {
            sim.hold(fault.hold_ms).await;
            broken_before_head()
        }
        FaultKind::Lost => {
            let _processed = right();
            broken_before_head()
        }
        FaultKind::Cut => cut(right()).await,
        FaultKind::Delay => right(),
    }
}

/// Half of a body under the length of the whole, then a broken connection.
async fn cut(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap_or_default();
    add(
        &mut head.headers,
        CONTENT_LENGTH,
        &(whole.len() + 1).to_string(),
    );
    let half = whole.slice(..whole.len() / 2);
    let pieces = stream::iter([Ok(half)]).chain(stream::once(async {
        // The half has to leave the socket's buffer before the break.
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(reset())
    }));
    Response::from_parts(head, Body::from_stream(pieces))
}

/// hyper writes the head together with the first chunk; a body that breaks
/// before it closes the connection.
fn broken_before_head() -> Response {
    Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(reset())])))
}

/// What breaks a connection when a body has it.
pub(crate) fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

fn html(status: StatusCode) -> Response {
    let title = status.canonical_reason().unwrap_or("OK");
    let page = format!("<!DOCTYPE html><html><head><title>{title}</title></head></html>");
    (status, [(CONTENT_TYPE, HTML)], page).into_response()
}

fn add_throttle(headers: &mut HeaderMap, throttle: Option<Throttle>, api: Api) {
    let Some(throttle) = throttle else { return };
    let reset_s = throttle.reset_at_ms.saturating_add(999).div_euclid(1000);
    let (prefix, reset) = match api {
        Api::Mastodon => ("x-ratelimit", iso_8601(throttle.reset_at_ms, 6)),
        Api::X | Api::Twitter => ("x-rate-limit", reset_s.to_string()),
    };
    for (name, value) in [
        ("limit", throttle.limit.to_string()),
        ("remaining", throttle.remaining.to_string()),
        ("reset", reset),
    ] {
        if let Ok(name) = HeaderName::try_from(format!("{prefix}-{name}")) {
            add(headers, name, &value);
        }
    }
}

const HTML: &str = "text/html; charset=utf-8";
