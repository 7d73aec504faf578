//! What others did that concerns an account.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use driftline_core::social::NotificationKind;
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalAccountId, LocalId, StoreError, Tx,
    social::{
        local_account,
        notification::{self, Notification, NotificationFilter},
    },
    timeline::{Range, Viewer},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    account_entities::AccountEntities, accounts::RelatedQuery, answer, local_references::Unmapped,
    page_query::PageQuery,
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    transport::{Address, ApiError, PathId},
};

/// The routes.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/notifications", get(all))
        .route("/api/v1/notifications/unread_count", get(unread_count))
        .route("/api/v1/notifications/clear", post(clear))
        .route("/api/v1/notifications/{id}", get(one))
        .route("/api/v1/notifications/{id}/dismiss", post(dismiss))
}

/// The entity `Notification`.
#[derive(Serialize)]
struct NotificationJson {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    created_at: String,
    group_key: String,
    account: Box<RawValue>,
}

/// `GET /api/v1/notifications`: the entities `Notification`, the latest first.
async fn all(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
    address: Address,
    RelatedQuery { page: query }: RelatedQuery,
) -> Result<Response, ApiError> {
    let (account, range) = (caller.account.id, query.range);
    let filter = filter_of(&query)?;
    let of = address.clone();
    let read = answer::read(&app, move |tx| {
        let found = notification::page(tx, account, &filter, &range)?;
        let ends = found.first().zip(found.last());
        let ends = ends.map(|(newest, oldest)| (newest.id, oldest.id));
        let (shown, unmapped) = shown(tx, account, &found, &of)?;
        Ok(((shown, ends), unmapped))
    });
    let (shown, ends) = read.await?;
    Ok(query.answer(&address, "/api/v1/notifications", &shown, ends))
}

/// Which kinds a query asks for. Those that nothing here has are none's.
fn filter_of(query: &PageQuery) -> Result<NotificationFilter, ApiError> {
    let known = [NotificationKind::Follow, NotificationKind::FollowRequest];
    let asked: Vec<&str> = query.texts("types").collect();
    let excluded: Vec<&str> = query.texts("exclude_types").collect();
    let is_asked = |kind: &NotificationKind| {
        (asked.is_empty() || asked.contains(&kind.name())) && !excluded.contains(&kind.name())
    };
    let from = match query.text("account_id") {
        Some(id) => Some(id.parse::<AccountId>().map_err(|_| ApiError::NotFound)?),
        None => None,
    };
    Ok(NotificationFilter {
        kinds: Some(known.into_iter().filter(is_asked).collect()),
        from,
    })
}

fn shown(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    found: &[Notification],
    address: &Address,
) -> Result<(Vec<NotificationJson>, Unmapped), StoreError> {
    let ids: Vec<AccountId> = found.iter().map(|found| found.from).collect();
    let viewer = Viewer::Account(account);
    let (entities, unmapped) = AccountEntities::load(tx, &ids, viewer, address)?;
    let shown = found.iter().filter_map(|found| {
        Some(NotificationJson {
            id: found.id.to_string(),
            kind: found.kind.name(),
            created_at: iso_8601(found.created_at_ms),
            group_key: format!("ungrouped-{}", found.id),
            account: entities.of(found.from)?.to_owned(),
        })
    });
    Ok((shown.collect(), unmapped))
}

/// `GET /api/v1/notifications/{id}`: the entity `Notification`.
async fn one(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<NotificationJson>, ApiError> {
    let account = caller.account.id;
    let read = answer::read(&app, move |tx| {
        let found = notification::by_id(tx, account, LocalId::new(id))?;
        shown(tx, account, found.as_slice(), &address)
    });
    let found = read.await?.into_iter().next();
    Ok(Json(found.ok_or(ApiError::NotFound)?))
}

/// `GET /api/v1/notifications/unread_count`: how many there are, at most 100.
async fn unread_count(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
) -> Result<Json<HashMap<&'static str, usize>>, ApiError> {
    let account = caller.account.id;
    let range = Range {
        limit: MAX_COUNTED,
        ..Range::default()
    };
    let read = move |tx: &mut Tx<'_>| {
        notification::page(tx, account, &NotificationFilter::default(), &range)
    };
    let found = app.store.read(read).await?;
    Ok(Json(HashMap::from([("count", found.len())])))
}

/// `POST /api/v1/notifications/clear`: removes all.
async fn clear(
    caller: LoggedIn<needs::WriteNotifications>,
    State(app): State<Arc<App>>,
) -> Result<Json<Value>, ApiError> {
    remove(&app, caller.account.id, None).await
}

/// `POST /api/v1/notifications/{id}/dismiss`: removes one.
async fn dismiss(
    caller: LoggedIn<needs::WriteNotifications>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    remove(&app, caller.account.id, Some(LocalId::new(id))).await
}

async fn remove(
    app: &App,
    account: LocalAccountId,
    id: Option<LocalId>,
) -> Result<Json<Value>, ApiError> {
    let write = move |tx: &mut Tx<'_>| notification::dismiss(tx, account, id);
    let removed = app.store.write(local_account::root(account), write).await?;
    match removed || id.is_none() {
        true => Ok(Json(json!({}))),
        false => Err(ApiError::NotFound),
    }
}

const MAX_COUNTED: u16 = 100;
