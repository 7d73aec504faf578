//! Notifications in groups, as Mastodon 4.3 gives them. What is told here is of one account or one post each, so every
//! group has one.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::request::Parts,
    response::Response,
};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalId, StoreError, Tx,
    social::notification::{self, Notification},
    timeline::Viewer,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    notified_posts::NotifiedPosts,
    ungrouped::{self, NotificationParams},
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::NotificationGroupKey,
    mastodon::{
        accounts::{
            account_entities::AccountEntities, profiles::Entities, related_accounts::RelatedQuery,
        },
        answer,
        entities::{Account, GroupedNotifications, NotificationPolicy},
        page_query::AccountPageParams,
        view::View,
    },
    transport::{Address, ApiError, PathText, Problem},
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
    State(app): State<Arc<App>>,
    address: Address,
    RelatedQuery { page: query }: RelatedQuery,
) -> Result<Response, ApiError> {
    let (account, range) = (caller.account.id, query.range);
    let filter = ungrouped::filter_of(&query)?;
    let (of, view) = (address.clone(), View::of(&app, Viewer::Account(account)));
    let read = answer::read(&app, move |tx| {
        let found = notification::page(tx, account, &filter, &range)?;
        let ends = ungrouped::ends(&found);
        Ok((grouped(tx, &view, found, &of)?, ends))
    });
    let (grouped, ends) = read.await?;
    Ok(query.answer(&address, "/api/v2/notifications", &grouped, ends))
}

fn grouped(
    tx: &mut Tx<'_>,
    view: &View,
    mut found: Vec<Notification>,
    address: &Address,
) -> Result<GroupedJson, StoreError> {
    let posts = NotifiedPosts::load(tx, &found, view.viewer)?;
    found.retain(|found| posts.shows(found));
    let accounts = entities(tx, view.viewer, &found, address)?;
    let statuses = posts.entities(tx, view)?;
    let shown = found
        .iter()
        .filter_map(|found| Some(posts.of(found, &statuses)?.1));
    let shown = owned(shown.collect());
    let groups = found.iter().filter_map(|found| {
        accounts.of(found.from)?;
        Some(GroupJson {
            group_key: ungrouped::group_key(found.id),
            notifications_count: 1,
            kind: found.kind.name(),
            most_recent_notification_id: found.id.raw(),
            page_min_id: found.id.to_string(),
            page_max_id: found.id.to_string(),
            latest_page_notification_at: iso_8601(found.created_at_ms),
            sample_account_ids: [found.from.to_string()],
            status_id: posts.of(found, &statuses).map(|(id, _)| id.to_string()),
        })
    });
    let mut from: Vec<AccountId> = Vec::new();
    for found in &found {
        if !from.contains(&found.from) {
            from.push(found.from);
        }
    }
    let grouped = GroupedJson {
        notification_groups: groups.collect(),
        accounts: owned(accounts.in_order(from)),
        statuses: shown,
    };
    Ok(grouped)
}

fn entities(
    tx: &mut Tx<'_>,
    viewer: Viewer,
    found: &[Notification],
    address: &Address,
) -> Result<AccountEntities, StoreError> {
    let ids: Vec<AccountId> = found.iter().map(|found| found.from).collect();
    AccountEntities::load(tx, &ids, viewer, address)
}

fn owned(entities: Vec<&RawValue>) -> Entities {
    entities.into_iter().map(ToOwned::to_owned).collect()
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
    State(app): State<Arc<App>>,
    GroupKey(id): GroupKey,
    address: Address,
) -> Result<Json<GroupedJson>, ApiError> {
    let account = caller.account.id;
    let view = View::of(&app, Viewer::Account(account));
    let read = answer::read(&app, move |tx| {
        let found = notification::by_id(tx, account, id)?;
        grouped(tx, &view, found.into_iter().collect(), &address)
    });
    let found = read.await?;
    match found.notification_groups.is_empty() {
        true => Err(ApiError::NotFound),
        false => Ok(Json(found)),
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
    State(app): State<Arc<App>>,
    GroupKey(id): GroupKey,
    address: Address,
) -> Result<Json<Entities>, ApiError> {
    let account = caller.account.id;
    let read = answer::read(&app, move |tx| {
        let viewer = Viewer::Account(account);
        let found = notification::by_id(tx, account, id)?;
        let posts = NotifiedPosts::load(tx, found.as_slice(), viewer)?;
        let found = found.filter(|found| posts.shows(found));
        let accounts = entities(tx, viewer, found.as_slice(), &address)?;
        Ok(owned(accounts.in_order(found.map(|found| found.from))))
    });
    let found = read.await?;
    match found.is_empty() {
        true => Err(ApiError::NotFound),
        false => Ok(Json(found)),
    }
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
    State(app): State<Arc<App>>,
    GroupKey(id): GroupKey,
) -> Result<Json<Value>, ApiError> {
    ungrouped::remove(&app, caller.account.id, Some(id)).await
}

/// How many groups of notifications came after the last one that was read, at most 100.
#[utoipa::path(
    get, path = "/api/v2/notifications/unread_count", tag = "notifications",
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn unread_count(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
) -> Result<Json<HashMap<&'static str, usize>>, ApiError> {
    ungrouped::count_unread(&app, caller.account.id).await
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
