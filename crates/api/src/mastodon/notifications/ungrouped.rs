//! What others did that concerns an account.

use std::{collections::HashMap, sync::Arc};

use axum::{Json, extract::State, response::Response};
use driftline_core::social::{MarkedTimeline, NotificationKind};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalAccountId, LocalId, StoreError, Tx,
    social::{
        local_account, marker,
        notification::{self, Notification, NotificationFilter},
    },
    timeline::{Range, Viewer},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::notified_posts::NotifiedPosts;
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::{AccountId as AccountIdText, NotificationId},
    mastodon::{
        accounts::{account_entities::AccountEntities, related_accounts::RelatedQuery},
        answer,
        entities::Notification as NotificationEntity,
        page_query::{AccountPageParams, PageQuery},
        view::View,
    },
    transport::{Address, ApiError, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(all))
        .routes(routes!(unread_count))
        .routes(routes!(clear))
        .routes(routes!(one))
        .routes(routes!(dismiss))
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
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Box<RawValue>>,
}

/// What others did that concerns the account, the latest first.
#[utoipa::path(
    get, path = "/api/v1/notifications", tag = "notifications", params(NotificationParams, AccountPageParams),
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = [NotificationEntity], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn all(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
    address: Address,
    RelatedQuery { page: query }: RelatedQuery,
) -> Result<Response, ApiError> {
    let (account, range) = (caller.account.id, query.range);
    let filter = filter_of(&query)?;
    let (of, view) = (address.clone(), View::of(&app, Viewer::Account(account)));
    let read = answer::read(&app, move |tx| {
        let found = notification::page(tx, account, &filter, &range)?;
        let ends = ends(&found);
        Ok((shown(tx, &view, &found, &of)?, ends))
    });
    let (shown, ends) = read.await?;
    Ok(query.answer(&address, "/api/v1/notifications", &shown, ends))
}

/// The newest and the oldest ID of a page.
pub(crate) fn ends(found: &[Notification]) -> Option<(LocalId, LocalId)> {
    let ends = found.first().zip(found.last());
    ends.map(|(newest, oldest)| (newest.id, oldest.id))
}

/// The key of the group of a notification, which is alone in it.
pub(crate) fn group_key(id: LocalId) -> String {
    format!("{UNGROUPED}{id}")
}

/// The notification of the group with that key.
pub(crate) fn id_of_group(key: &str) -> Option<LocalId> {
    key.strip_prefix(UNGROUPED)?.parse().ok()
}

/// Which notifications.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct NotificationParams {
    /// `follow`, `follow_request` or `status`; also several as `types[]`.
    types: Option<String>,
    /// The same, to leave out.
    exclude_types: Option<String>,
    /// Only of that account.
    #[param(value_type = Option<AccountIdText>)]
    account_id: Option<String>,
}

/// Which kinds a query asks for. Those that nothing here has are none's.
pub(crate) fn filter_of(query: &PageQuery) -> Result<NotificationFilter, ApiError> {
    let known = [
        NotificationKind::Follow,
        NotificationKind::FollowRequest,
        NotificationKind::Status,
    ];
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
    view: &View,
    found: &[Notification],
    address: &Address,
) -> Result<Vec<NotificationJson>, StoreError> {
    let ids: Vec<AccountId> = found.iter().map(|found| found.from).collect();
    let entities = AccountEntities::load(tx, &ids, view.viewer, address)?;
    let posts = NotifiedPosts::load(tx, found, view.viewer)?;
    let statuses = posts.entities(tx, view)?;
    let shown = found.iter().filter(|found| posts.shows(found));
    let shown = shown.filter_map(|found| {
        let status = posts.of(found, &statuses);
        Some(NotificationJson {
            id: found.id.to_string(),
            kind: found.kind.name(),
            created_at: iso_8601(found.created_at_ms),
            group_key: group_key(found.id),
            account: entities.of(found.from)?.to_owned(),
            status: status.map(|(_, status)| status.to_owned()),
        })
    });
    Ok(shown.collect())
}

/// The notifications of an account after one, the earliest first, each as JSON, and the ID of the last one. Those that
/// are not shown have no JSON.
pub(crate) async fn after(
    app: &App,
    account: LocalAccountId,
    last: LocalId,
    address: &Address,
) -> Result<(Vec<String>, LocalId), ApiError> {
    let range = Range {
        min: Some(last),
        limit: MAX_COUNTED,
        ..Range::default()
    };
    let (of, view) = (address.clone(), View::of(app, Viewer::Account(account)));
    let read = answer::read(app, move |tx| {
        let found = notification::page(tx, account, &NotificationFilter::default(), &range)?;
        let newest = found.first().map_or(last, |newest| newest.id);
        Ok((shown(tx, &view, &found, &of)?, newest))
    });
    let (shown, newest) = read.await?;
    let json = shown.iter().rev().map(serde_json::to_string);
    Ok((json.filter_map(Result::ok).collect(), newest))
}

/// A notification.
#[utoipa::path(
    get, path = "/api/v1/notifications/{id}", tag = "notifications", params(("id" = NotificationId, Path)),
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = NotificationEntity), (status = 404, body = Problem)),
)]
async fn one(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<NotificationJson>, ApiError> {
    let account = caller.account.id;
    let view = View::of(&app, Viewer::Account(account));
    let read = answer::read(&app, move |tx| {
        let found = notification::by_id(tx, account, LocalId::new(id))?;
        shown(tx, &view, found.as_slice(), &address)
    });
    let found = read.await?.into_iter().next();
    Ok(Json(found.ok_or(ApiError::NotFound)?))
}

/// How many notifications came after the last one that was read, at most 100.
#[utoipa::path(
    get, path = "/api/v1/notifications/unread_count", tag = "notifications",
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn unread_count(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
) -> Result<Json<HashMap<&'static str, usize>>, ApiError> {
    count_unread(&app, caller.account.id).await
}

/// How many notifications came after the account's marker of them.
pub(crate) async fn count_unread(
    app: &App,
    account: LocalAccountId,
) -> Result<Json<HashMap<&'static str, usize>>, ApiError> {
    let read = move |tx: &mut Tx<'_>| {
        let markers = marker::all(tx, account)?;
        let read = markers
            .iter()
            .find(|marker| marker.timeline == MarkedTimeline::Notifications);
        let range = Range {
            since: read.map(|marker| marker.last_read_id),
            limit: MAX_COUNTED,
            ..Range::default()
        };
        let found = notification::page(tx, account, &NotificationFilter::default(), &range)?;
        let posts = NotifiedPosts::load(tx, &found, Viewer::Account(account))?;
        Ok::<_, StoreError>(found.iter().filter(|found| posts.shows(found)).count())
    };
    let count = app.store.read(read).await?;
    Ok(Json(HashMap::from([("count", count)])))
}

/// Removes all notifications.
#[utoipa::path(
    post, path = "/api/v1/notifications/clear", tag = "notifications",
    security(("account" = ["write:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn clear(
    caller: LoggedIn<needs::WriteNotifications>,
    State(app): State<Arc<App>>,
) -> Result<Json<Value>, ApiError> {
    remove(&app, caller.account.id, None).await
}

/// Removes a notification.
#[utoipa::path(
    post, path = "/api/v1/notifications/{id}/dismiss", tag = "notifications", params(("id" = NotificationId, Path)),
    security(("account" = ["write:notifications"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn dismiss(
    caller: LoggedIn<needs::WriteNotifications>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    remove(&app, caller.account.id, Some(LocalId::new(id))).await
}

/// Removes a notification of the account, or all.
pub(crate) async fn remove(
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
const UNGROUPED: &str = "ungrouped-";
