//! IDs over HTTP.

use std::{collections::BTreeMap, fmt::Write as _, str::FromStr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::PathRejection},
    http::{
        HeaderMap,
        header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, USER_AGENT},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use driftline_id::{Decoded, Layout};
use headers_accept::Accept;
use mediatype::{
    MediaType,
    names::{APPLICATION, JSON, OCTET_STREAM, PLAIN, TEXT},
};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::{Issuer, Service, Status, agent::is_agent, status::Offsets};
use crate::http::{ApiError, refuse_other_sites, rendered};

/// `/api/v1/ids` and what lies below it, with its description. No page of another site may take IDs
/// from a browser that reaches them.
pub fn router(service: &Service) -> Router {
    refuse_other_sites(routes(service))
        .route("/api/openapi.json", get(async || Json(api_description())))
}

/// `/api/v1/ids` and what lies below it, for a server that describes itself, and
/// that says who may call them.
pub fn routes(service: &Service) -> Router {
    let id_state = IdState {
        issuer: Arc::clone(service.issuer()),
        offsets: Arc::clone(service.offsets()),
    };
    Router::new()
        .route("/api/v1/ids", get(status).post(issue))
        .route("/api/v1/ids/{id}", get(decode))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .with_state(id_state)
}

/// [`router`], with what those who run a service by itself ask it.
pub fn standalone(service: &Service, metrics: PrometheusHandle) -> Router {
    let issuer = Arc::clone(service.issuer());
    let ready = async move || {
        if issuer.window_until_us() > issuer.now_us() {
            Ok("ok")
        } else {
            Err(ApiError::NotReady("The node's window was not extended"))
        }
    };
    router(service)
        .route("/livez", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/metrics", get(async move || rendered(&metrics)))
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
}

/// The OpenAPI description of these routes.
pub fn api_description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "IDs over HTTP. IDs are strings in JSON: numbers above 2^53 lose digits in most readers.",
        license(name = "MIT OR Apache-2.0")
    ),
    paths(status, issue, decode),
    components(schemas(Status, DecodedId, Problem))
)]
struct Description;

#[derive(Clone)]
struct IdState {
    issuer: Arc<Issuer>,
    offsets: Arc<Offsets>,
}

/// What went wrong.
#[derive(Serialize, ToSchema)]
struct Problem {
    /// A sentence for people.
    error: String,
}

/// An ID taken apart.
#[derive(Serialize, ToSchema)]
struct DecodedId {
    /// The layout that it was read by.
    #[schema(example = "twitter")]
    layout: &'static str,
    /// The ID as its layout writes it.
    id: String,
    /// The ID in decimal.
    decimal: String,
    /// The ID's time, in Unix ms.
    time_ms: i64,
    /// The same, as RFC 3339 writes it; null for times out of its range.
    time: Option<String>,
    /// The other fields, as strings.
    #[schema(value_type = BTreeMap<String, String>)]
    fields: BTreeMap<&'static str, String>,
}

/// The state of the service.
#[utoipa::path(get, path = "/api/v1/ids", responses((status = 200, body = Status)))]
async fn status(State(id_state): State<IdState>) -> Json<Status> {
    Json(Status::of(&id_state.issuer, &id_state.offsets))
}

/// Makes IDs, each larger than the one before.
///
/// As an array of JSON strings, as lines of plain text, or as 8 bytes each, the most significant
/// first: whichever `Accept` prefers.
#[utoipa::path(
    post,
    path = "/api/v1/ids",
    params(("count" = Option<usize>, Query, description = "How many: 1 to 100000; without it, 1")),
    responses(
        (status = 200, description = "The IDs", content(
            (Vec<String> = "application/json"),
            (String = "text/plain"),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 400, body = Problem, description = "The count makes no sense"),
        (status = 403, body = Problem, description = "Not for pages of other sites"),
        (status = 406, body = Problem, description = "`Accept` allows none of the three forms"),
        (status = 503, body = Problem, description = "Refused: the clock is behind, the node is not held, or all IDs of the moment are taken"),
    )
)]
async fn issue(
    State(id_state): State<IdState>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let count = count(query.get("count").map(String::as_str))?;
    let form = Form::wanted(&headers)?;
    let issued = id_state.issuer.issued_to(agent(&headers));
    let made = Arc::clone(&id_state.issuer).batch(count).await;
    let ids = made.map_err(|error| ApiError::Refused(error.to_string()))?;
    issued.increment(ids.len() as u64);
    let headers = [(CONTENT_TYPE, form.name()), (CACHE_CONTROL, "no-store")];
    Ok((headers, form.body(&ids)).into_response())
}

/// Takes an ID apart.
#[utoipa::path(
    get,
    path = "/api/v1/ids/{id}",
    params(
        ("id" = String, Path, description = "The ID: decimal, hexadecimal after 0x, or as its layout writes it"),
        ("layout" = Option<String>, Query, description = "Its layout; without it, the service's"),
    ),
    responses(
        (status = 200, body = DecodedId),
        (status = 400, body = Problem, description = "It is no ID, or there is no such layout"),
    )
)]
async fn decode(
    State(id_state): State<IdState>,
    id: Result<Path<String>, PathRejection>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Json<DecodedId>, ApiError> {
    let Path(id) =
        id.map_err(|_| ApiError::BadParameter("the ID is no text in UTF-8".to_owned()))?;
    let layout = match query.get("layout") {
        None => *id_state.issuer.layout(),
        Some(name) => Layout::named(name).ok_or_else(|| {
            let names: Vec<&str> = Layout::ALL.iter().map(Layout::name).collect();
            ApiError::BadParameter(format!("{name:?} is no layout; write {}", names.join(", ")))
        })?,
    };
    let raw = layout
        .parse_any(&id)
        .map_err(|error| ApiError::BadParameter(format!("{id:?}: {error}")))?;
    Ok(Json(DecodedId::new(&layout.decode(raw))))
}

impl DecodedId {
    fn new(decoded: &Decoded) -> Self {
        let fields = decoded.fields.iter();
        Self {
            layout: decoded.layout.name(),
            id: decoded.text(),
            decimal: decoded.decimal(),
            time_ms: decoded.time_ms,
            time: jiff::Timestamp::from_millisecond(decoded.time_ms)
                .ok()
                .map(|time| time.to_string()),
            fields: fields
                .map(|field| (field.name(), field.value.to_string()))
                .collect(),
        }
    }
}

/// How IDs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Lines,
    Binary,
}

impl Form {
    fn wanted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let lines = headers.get_all(ACCEPT).iter().map(|line| line.to_str());
        let wanted: Result<Vec<&str>, _> = lines.collect();
        let wanted = wanted.map(|lines| lines.join(","));
        if wanted.as_ref().is_ok_and(|wanted| wanted.trim().is_empty()) {
            return Ok(Self::Json);
        }
        let accept = wanted.ok().and_then(|text| Accept::from_str(&text).ok());
        let accept = accept
            .ok_or_else(|| ApiError::BadParameter("the header Accept cannot be read".to_owned()))?;
        match accept.negotiate(FORMS) {
            Some(form) if *form == LINES => Ok(Self::Lines),
            Some(form) if *form == BINARY => Ok(Self::Binary),
            Some(_) => Ok(Self::Json),
            None => Err(ApiError::NotAcceptable(
                "IDs come as application/json, text/plain or application/octet-stream",
            )),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "text/plain; charset=utf-8",
            Self::Binary => "application/octet-stream",
        }
    }

    fn body(self, ids: &[u64]) -> Vec<u8> {
        match self {
            Self::Binary => ids.iter().flat_map(|id| id.to_be_bytes()).collect(),
            Self::Lines => text(ids, "", "\n", "\n", ""),
            Self::Json => text(ids, "[\"", "\",\"", "\"", "]"),
        }
    }
}

/// At least one ID, in decimal.
fn text(ids: &[u64], before: &str, between: &str, after: &str, end: &str) -> Vec<u8> {
    let mut text = String::with_capacity(ids.len() * 24);
    let mut separator = before;
    for id in ids {
        text.push_str(separator);
        // Writing to a string does not fail.
        let _ = write!(text, "{id}");
        separator = between;
    }
    text.push_str(after);
    text.push_str(end);
    text.into_bytes()
}

fn count(text: Option<&str>) -> Result<usize, ApiError> {
    let Some(text) = text else {
        return Ok(1);
    };
    let count = text.parse().ok();
    count
        .filter(|count| (1..=MAX_IDS).contains(count))
        .ok_or_else(|| {
            ApiError::BadParameter(format!(
                "count={text:?} is none from 1 to {MAX_IDS}; ask several times for more"
            ))
        })
}

/// The product that a client names first, if that is an agent.
fn agent(headers: &HeaderMap) -> &[u8] {
    let named = headers
        .get(USER_AGENT)
        .map_or(&b""[..], |agent| agent.as_bytes());
    let product = named
        .split(|byte| matches!(byte, b'/' | b' '))
        .next()
        .unwrap_or_default();
    if is_agent(product) { product } else { b"http" }
}

const LINES: MediaType<'static> = MediaType::new(TEXT, PLAIN);
const BINARY: MediaType<'static> = MediaType::new(APPLICATION, OCTET_STREAM);
/// The first is what a client gets that takes any.
const FORMS: &[MediaType<'static>] = &[MediaType::new(APPLICATION, JSON), LINES, BINARY];
/// 25 ms of a 12-bit sequence.
const MAX_IDS: usize = 100_000;
