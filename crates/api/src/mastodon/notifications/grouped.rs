//! Notifications in groups, as Mastodon 4.3 gives them. What is told here is of one account or one post each, so every
//! group has one.

use std::sync::Arc;

use axum::{Json, extract::FromRequestParts, http::request::Parts};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalId, StoreError, Tx,
    social::notification::{self, Notification},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    notified_posts::NotifiedPosts,
    ungrouped::{self, NotificationParams, UnreadCount},
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::NotificationGroupKey,
    mastodon::{
        accounts::account_entities::{AccountEntities, Entities},
        entities::{Account, GroupedNotifications, NotificationPolicy},
        page_query::{AccountPageParams, AccountPageQuery},
        view::View,
    },
    transport::{Address, ApiError, ApiResult, JsonResult, PathText, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(all))
        .routes(routes!(unread_count))
        .routes(routes!(policy))
        .routes(routes!(one))
        .routes(routes!(accounts))
        .routes(routes!(dismiss))
}

/// The entity `GroupedNotificationsResults`.
#[derive(Serialize)]
struct GroupedJson {
    accounts: Entities,
    statuses: Entities,
    notification_groups: Vec<GroupJson>,
}

/// The entity `NotificationGroup`.
#[derive(Serialize)]
struct GroupJson {
    group_key: String,
    notifications_count: u8,
    #[serde(rename = "type")]
    kind: &'static str,
    /// A number, as Mastodon's is.
    most_recent_notification_id: u64,
    page_min_id: String,
    page_max_id: String,
    latest_page_notification_at: String,
    sample_account_ids: [String; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    status_id: Option<String>,
}

/// What others did that concerns the account, the latest first, in groups.
#[utoipa::path(
    get, path = "/api/v2/notifications", tag = "notifications", params(NotificationParams, AccountPageParams),
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = GroupedNotifications, headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn all(
    caller: LoggedIn<needs::ReadNotifications>,
    AccountPageQuery(query): AccountPageQuery,
) -> ApiResult {
    let (grouped, ends) = ungrouped::page(&caller, &query, grouped).await?;
    Ok(query.answer(&grouped, ends))
}

fn grouped(
    tx: &mut Tx<'_>,
    view: &View,
    found: &[Notification],
    address: &Address,
) -> Result<GroupedJson, StoreError> {
    let posts = NotifiedPosts::load(tx, found, view.viewer)?;
    let statuses = posts.entities(tx, view)?;
    let found: Vec<&Notification> = found.iter().filter(|found| posts.shows(found)).collect();
    let mut from: Vec<AccountId> = Vec::new();
    for found in &found {
        if !from.contains(&found.from) {
            from.push(found.from);
        }
    }
    let accounts = AccountEntities::load(tx, &from, view.viewer, address)?;
    let shown = found.iter().filter_map(|found| {
        let (_, status) = posts.status(found, &statuses)?;
        Some(status.to_owned())
    });
    let groups = found.iter().filter_map(|found| {
        accounts.get(found.from)?;
        Some(GroupJson {
            group_key: ungrouped::group_key(found.id),
            notifications_count: 1,
            kind: found.kind.name(),
            most_recent_notification_id: found.id.raw(),
            page_min_id: found.id.to_string(),
            page_max_id: found.id.to_string(),
            latest_page_notification_at: iso_8601(found.created_at_ms),
            sample_account_ids: [found.from.to_string()],
            status_id: posts.status(found, &statuses).map(|(id, _)| id.to_string()),
        })
    });
    Ok(GroupedJson {
        statuses: shown.collect(),
        notification_groups: groups.collect(),
        accounts: accounts.in_order(from),
    })
}

/// A group of notifications.
#[utoipa::path(
    get, path = "/api/v2/notifications/{group_key}", tag = "notifications",
    params(("group_key" = NotificationGroupKey, Path)),
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = GroupedNotifications), (status = 404, body = Problem)),
)]
async fn one(
    caller: LoggedIn<needs::ReadNotifications>,
    GroupKey(id): GroupKey,
) -> JsonResult<GroupedJson> {
    group(&caller, id).await.map(Json)
}

async fn group<S>(caller: &LoggedIn<S>, id: LocalId) -> ApiResult<GroupedJson> {
    let address = caller.address.clone();
    let view = View::new(caller);
    let read = caller.read(move |tx, account| {
        let found = notification::by_id(tx, account, id)?;
        grouped(tx, &view, found.as_slice(), &address)
    });
    let found = read.await?;
    match found.notification_groups.is_empty() {
        true => Err(ApiError::NotFound),
        false => Ok(found),
    }
}

/// The accounts of a group of notifications.
#[utoipa::path(
    get, path = "/api/v2/notifications/{group_key}/accounts", tag = "notifications",
    params(("group_key" = NotificationGroupKey, Path)),
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = [Account]), (status = 404, body = Problem)),
)]
async fn accounts(
    caller: LoggedIn<needs::ReadNotifications>,
    GroupKey(id): GroupKey,
) -> JsonResult<Entities> {
    Ok(Json(group(&caller, id).await?.accounts))
}

/// Removes a group of notifications.
#[utoipa::path(
    post, path = "/api/v2/notifications/{group_key}/dismiss", tag = "notifications",
    params(("group_key" = NotificationGroupKey, Path)),
    security(("account" = ["write:notifications"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn dismiss(
    caller: LoggedIn<needs::WriteNotifications>,
    GroupKey(id): GroupKey,
) -> JsonResult<Value> {
    ungrouped::remove(&caller, Some(id)).await
}

/// How many groups of notifications came after the last one that was read, at most 100.
#[utoipa::path(
    get, path = "/api/v2/notifications/unread_count", tag = "notifications",
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn unread_count(caller: LoggedIn<needs::ReadNotifications>) -> JsonResult<UnreadCount> {
    ungrouped::count_unread(&caller).await
}

/// Which notifications are filtered: none, so that each policy is `accept`.
#[utoipa::path(
    get, path = "/api/v2/notifications/policy", tag = "notifications",
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = NotificationPolicy)),
)]
async fn policy(_: LoggedIn<needs::ReadNotifications>) -> Json<Value> {
    Json(json!({
        "for_not_following": "accept",
        "for_not_followers": "accept",
        "for_new_accounts": "accept",
        "for_private_mentions": "accept",
        "for_limited_accounts": "accept",
        "summary": { "pending_requests_count": 0, "pending_notifications_count": 0 },
    }))
}

/// The key of a group in a request's path. An invalid one answers 404.
struct GroupKey(LocalId);

impl<S: Send + Sync> FromRequestParts<S> for GroupKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathText(key) = PathText::<String>::from_request_parts(parts, state).await?;
        let id = ungrouped::id_of_group(&key);
        id.map(Self).ok_or(ApiError::NotFound)
    }
}
