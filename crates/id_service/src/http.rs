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
use driftline_api::{
    auth::refuse_other_sites,
    transport::{ApiError, Problem, rendered},
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
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Issuer, IssuerStatus, Service, agent::is_agent, issuer_status::ClockOffsets};

/// `/api/v1/ids` and the paths below it, with the OpenAPI description. Requests from pages of other
/// sites are refused, since they would use up IDs.
pub fn router(service: &Service) -> Router {
    refuse_other_sites(routes(service))
        .route("/api/openapi.json", get(async || Json(api_description())))
}

/// `/api/v1/ids` and the paths below it, for a server that has a description and an authorization of
/// its own.
pub fn routes(service: &Service) -> Router {
    let id_state = IdState {
        issuer: Arc::clone(service.issuer()),
        offsets: Arc::clone(service.offsets()),
    };
    Router::from(described_routes())
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .with_state(id_state)
}

/// [`router`], with health checks and metrics, for a service that runs by itself.
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
    let mut description = Description::openapi();
    description.merge(described_routes().into_openapi());
    description
}

fn described_routes() -> OpenApiRouter<IdState> {
    OpenApiRouter::new()
        .routes(routes!(status, issue))
        .routes(routes!(decode))
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Driftline",
        description = "IDs over HTTP. IDs are strings in JSON: most parsers lose digits of numbers above 2^53.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem))
)]
struct Description;

#[derive(Clone)]
struct IdState {
    issuer: Arc<Issuer>,
    offsets: Arc<ClockOffsets>,
}

/// A decoded ID.
#[derive(Serialize, ToSchema)]
struct DecodedId {
    /// The layout that it was decoded with.
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
#[utoipa::path(
    get,
    path = "/api/v1/ids",
    tag = "ids",
    security(()),
    responses((status = 200, body = IssuerStatus))
)]
async fn status(State(id_state): State<IdState>) -> Json<IssuerStatus> {
    Json(IssuerStatus::of(&id_state.issuer, &id_state.offsets))
}

/// Issues IDs, each larger than the one before.
///
/// As an array of JSON strings, as lines of plain text, or as 8 bytes each, the most significant
/// first: whichever `Accept` prefers.
#[utoipa::path(
    post,
    path = "/api/v1/ids",
    tag = "ids",
    security(()),
    params(("count" = Option<usize>, Query, description = "How many: 1 to 100000; without it, 1")),
    responses(
        (status = 200, description = "The IDs", content(
            (Vec<String> = "application/json"),
            (String = "text/plain"),
            (Vec<u8> = "application/octet-stream"),
        )),
        (status = 400, body = Problem, description = "Invalid count"),
        (status = 403, body = Problem, description = "From a page of another site"),
        (status = 406, body = Problem, description = "`Accept` allows none of the three forms"),
        (status = 503, body = Problem, description = "Not available: the clock is behind, the node is lost, or all IDs of the current ticks are used"),
    )
)]
async fn issue(
    State(id_state): State<IdState>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let count = count(query.get("count").map(String::as_str))?;
    let form = Form::accepted(&headers)?;
    let issued = id_state.issuer.issued_to(agent(&headers));
    let made = Arc::clone(&id_state.issuer).batch(count).await;
    let ids = made.map_err(|error| ApiError::Refused(error.to_string()))?;
    issued.increment(ids.len() as u64);
    let headers = [(CONTENT_TYPE, form.name()), (CACHE_CONTROL, "no-store")];
    Ok((headers, form.body(&ids)).into_response())
}

/// Decodes an ID.
#[utoipa::path(
    get,
    path = "/api/v1/ids/{id}",
    tag = "ids",
    security(()),
    params(
        ("id" = String, Path, description = "The ID: decimal, hexadecimal after 0x, or as its layout writes it"),
        ("layout" = Option<String>, Query, description = "Its layout; without it, the service's"),
    ),
    responses(
        (status = 200, body = DecodedId),
        (status = 400, body = Problem, description = "Invalid ID or unknown layout"),
    )
)]
async fn decode(
    State(id_state): State<IdState>,
    id: Result<Path<String>, PathRejection>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Json<DecodedId>, ApiError> {
    let Path(id) =
        id.map_err(|_| ApiError::BadParameter("invalid ID: expected UTF-8".to_owned()))?;
    let layout = match query.get("layout") {
        None => *id_state.issuer.layout(),
        Some(name) => Layout::named(name).ok_or_else(|| {
            let names: Vec<&str> = Layout::ALL.iter().map(Layout::name).collect();
            ApiError::BadParameter(format!(
                "invalid layout {name:?}: expected one of {}",
                names.join(", ")
            ))
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

/// The format of IDs in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Lines,
    Binary,
}

impl Form {
    fn accepted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let lines = headers.get_all(ACCEPT).iter().map(|line| line.to_str());
        let accept: Result<Vec<&str>, _> = lines.collect();
        let accept = accept.map(|lines| lines.join(","));
        if accept.as_ref().is_ok_and(|accept| accept.trim().is_empty()) {
            return Ok(Self::Json);
        }
        let accept = accept.ok().and_then(|text| Accept::from_str(&text).ok());
        let accept =
            accept.ok_or_else(|| ApiError::BadParameter("invalid header Accept".to_owned()))?;
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
            Self::Lines => text(ids, "", "\n", "\n"),
            Self::Json => text(ids, "[\"", "\",\"", "\"]"),
        }
    }
}

/// At least one ID, in decimal, between these texts.
fn text(ids: &[u64], before: &str, between: &str, after: &str) -> Vec<u8> {
    let mut text = String::with_capacity(ids.len() * 24);
    for (index, id) in ids.iter().enumerate() {
        text.push_str(if index == 0 { before } else { between });
        // Writing to a string does not fail.
        let _ = write!(text, "{id}");
    }
    text.push_str(after);
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
                "invalid count {text:?}: it must be between 1 and {MAX_IDS}; send several requests for more"
            ))
        })
}

/// The first product of the `User-Agent` header, if it is a valid agent.
fn agent(headers: &HeaderMap) -> &[u8] {
    let header = headers
        .get(USER_AGENT)
        .map_or(&b""[..], |agent| agent.as_bytes());
    let product = header
        .split(|byte| matches!(byte, b'/' | b' '))
        .next()
        .unwrap_or_default();
    if is_agent(product) { product } else { b"http" }
}

const LINES: MediaType<'static> = MediaType::new(TEXT, PLAIN);
const BINARY: MediaType<'static> = MediaType::new(APPLICATION, OCTET_STREAM);
/// The first is the default.
const FORMS: &[MediaType<'static>] = &[MediaType::new(APPLICATION, JSON), LINES, BINARY];
/// 25 ms of a 12-bit sequence.
const MAX_IDS: usize = 100_000;
