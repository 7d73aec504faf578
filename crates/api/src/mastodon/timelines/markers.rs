//! Read markers, preferences and custom emojis.

use std::sync::Arc;

use axum::{Json, extract::State};
use driftline_core::social::MarkedTimeline;
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalId, StoreError, Tx,
    social::{
        local_account,
        marker::{self, Marker},
    },
};
use serde_json::{Map, Value, json};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{LoggedIn, needs},
    mastodon::{
        bodies::NewMarkers,
        entities::{CustomEmoji, Markers, Preferences},
    },
    transport::{ApiError, Params, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(some, set))
        .routes(routes!(preferences))
        .routes(routes!(custom_emojis))
}

/// Whose markers are asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct MarkersParams {
    /// `home`, `notifications` or both.
    #[param(rename = "timeline[]")]
    timeline: Option<Vec<String>>,
}

/// How far timelines were read: those that the query names.
#[utoipa::path(
    get, path = "/api/v1/markers", tag = "timelines", params(MarkersParams),
    security(("account" = ["read:statuses"])),
    responses((status = 200, body = Markers), (status = 400, body = Problem)),
)]
async fn some(
    caller: LoggedIn<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    Params(params): Params<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    let account = caller.account.id;
    let named: Vec<String> = match params.get("timeline") {
        Some(Value::Array(names)) => names.iter().filter_map(text).collect(),
        Some(name) => text(name).into_iter().collect(),
        None => Vec::new(),
    };
    let all = app.store.read(move |tx| marker::all(tx, account)).await?;
    let named = all
        .into_iter()
        .filter(|marker| named.iter().any(|name| name == marker.timeline.name()));
    Ok(Json(named.map(entity).collect()))
}

/// Sets how far timelines were read.
#[utoipa::path(
    post, path = "/api/v1/markers", tag = "timelines",
    request_body(content((NewMarkers), (NewMarkers = "application/x-www-form-urlencoded"), (NewMarkers = "multipart/form-data"))),
    security(("account" = ["write:statuses"])),
    responses((status = 200, body = Markers), (status = 409, body = Problem, description = "Another client was faster")),
)]
async fn set(
    caller: LoggedIn<needs::WriteStatuses>,
    State(app): State<Arc<App>>,
    Params(params): Params<Map<String, Value>>,
) -> Result<Json<Map<String, Value>>, ApiError> {
    let account = caller.account.id;
    let mut wanted = Vec::new();
    for timeline in [MarkedTimeline::Home, MarkedTimeline::Notifications] {
        let name = timeline.name();
        let value = match params.get(name) {
            Some(object) => object.get("last_read_id"),
            // As forms write it.
            None => params.get(&format!("{name}[last_read_id]")),
        };
        let Some(value) = value else { continue };
        let id = text(value).and_then(|text| text.parse::<LocalId>().ok());
        let id = id.ok_or_else(|| ApiError::BadParameter("invalid last_read_id".to_owned()))?;
        wanted.push((timeline, id));
    }
    let known = app.store.read(move |tx| marker::all(tx, account)).await?;
    let now_ms = app.people.now_ms();
    let write = move |tx: &mut Tx<'_>| {
        let mut all = Vec::new();
        for (timeline, id) in &wanted {
            let known = known.iter().find(|known| known.timeline == *timeline);
            let version = known.map_or(0, |known| known.version);
            match marker::set(tx, account, *timeline, *id, version, now_ms)? {
                Ok(marker) => all.push(marker),
                Err(conflict) => return Ok(Err(conflict)),
            }
        }
        Ok::<_, StoreError>(Ok(all))
    };
    let root = local_account::root(account);
    let set = app.store.write(root, write).await?;
    let set = set.map_err(|_| ApiError::Conflict("Conflict during update, please try again"))?;
    Ok(Json(set.into_iter().map(entity).collect()))
}

fn entity(marker: Marker) -> (String, Value) {
    let entity = json!({
        "last_read_id": marker.last_read_id.to_string(),
        "version": marker.version,
        "updated_at": iso_8601(marker.updated_at_ms),
    });
    (marker.timeline.name().to_owned(), entity)
}

/// An ID as a text; JSON may write it as a number.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The account's preferences.
///
/// They are Mastodon's defaults: nobody can change them here yet.
#[utoipa::path(
    get, path = "/api/v1/preferences", tag = "accounts",
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = Preferences)),
)]
async fn preferences(_: LoggedIn<needs::ReadAccounts>) -> Json<Value> {
    Json(json!({
        "posting:default:visibility": "public",
        "posting:default:sensitive": false,
        "posting:default:language": Value::Null,
        "posting:default:quote_policy": "public",
        "reading:expand:media": "default",
        "reading:expand:spoilers": false,
        "reading:autoplay:gifs": false,
    }))
}

/// The custom emojis of this server, which has none.
#[utoipa::path(
    get, path = "/api/v1/custom_emojis", tag = "server",
    security(()),
    responses((status = 200, body = [CustomEmoji])),
)]
async fn custom_emojis() -> Json<Vec<Value>> {
    Json(Vec::new())
}
