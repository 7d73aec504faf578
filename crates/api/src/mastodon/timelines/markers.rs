//! Read markers.

use axum::Json;
use driftline_core::social::MarkedTimeline;
use driftline_mastodon::iso_8601;
use driftline_store::{
    LocalId,
    social::marker::{self, Marker},
};
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use crate::{
    auth::{LoggedIn, needs},
    mastodon::{
        bodies::NewMarkers,
        entities::Markers,
        values::{text, texts},
    },
    transport::{ApiError, JsonResult, Params, Problem},
};

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
pub(crate) async fn some(
    caller: LoggedIn<needs::ReadStatuses>,
    Params(params): Params<Map<String, Value>>,
) -> JsonResult<Map<String, Value>> {
    let asked = texts(params.get("timeline"));
    let mut markers = caller.read(marker::all).await?;
    markers.retain(|marker| asked.iter().any(|name| name == marker.timeline.name()));
    Ok(Json(markers.into_iter().map(entity).collect()))
}

/// Sets how far timelines were read.
#[utoipa::path(
    post, path = "/api/v1/markers", tag = "timelines",
    request_body(content((NewMarkers), (NewMarkers = "application/x-www-form-urlencoded"), (NewMarkers = "multipart/form-data"))),
    security(("account" = ["write:statuses"])),
    responses((status = 200, body = Markers), (status = 409, body = Problem, description = "Another client was faster")),
)]
pub(crate) async fn set(
    caller: LoggedIn<needs::WriteStatuses>,
    Params(params): Params<Map<String, Value>>,
) -> JsonResult<Map<String, Value>> {
    let mut positions = Vec::new();
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
        positions.push((timeline, id));
    }
    let known = caller.read(marker::all).await?;
    let now_ms = caller.now_ms();
    let set = caller.write(move |tx, account| {
        let mut all = Vec::new();
        for (timeline, id) in &positions {
            let known = known.iter().find(|known| known.timeline == *timeline);
            let version = known.map_or(0, |known| known.version);
            match marker::set(tx, account, *timeline, *id, version, now_ms)? {
                Ok(marker) => all.push(marker),
                Err(conflict) => return Ok(Err(conflict)),
            }
        }
        Ok(Ok(all))
    });
    let set = set.await?;
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
