//! Read markers, preferences and custom emojis.

use std::sync::Arc;

use axum::{Json, Router, extract::State, routing::get};
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

use crate::{
    App,
    auth::{LoggedIn, needs},
    transport::{ApiError, Params},
};

/// The routes.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/markers", get(some).post(set))
        .route("/api/v1/preferences", get(preferences))
        .route("/api/v1/custom_emojis", get(custom_emojis))
}

/// `GET /api/v1/markers`: the entities `Marker` of the timelines that the query names.
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

/// `POST /api/v1/markers`: the entities `Marker` of the timelines that were set.
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
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// `GET /api/v1/preferences`: those of Mastodon, as nobody can change them here yet.
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

/// `GET /api/v1/custom_emojis`: this server has none.
async fn custom_emojis() -> Json<Vec<Value>> {
    Json(Vec::new())
}
