//! What others did that concerns an account.

use std::{collections::HashMap, sync::Arc};

use axum::Json;
use driftline_core::social::{MarkedTimeline, NotificationKind};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalAccountId, LocalId, StoreError, Tx,
    social::{
        marker,
        notification::{self, Notification, NotificationFilter},
    },
    timeline::Range,
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::notified_posts::NotifiedPosts;
use crate::{
    App,
    auth::{LoggedIn, RequestContext, needs},
    description::ids::{AccountId as AccountIdText, NotificationId},
    mastodon::{
        accounts::account_entities::AccountEntities,
        answer::{done, found},
        entities::Notification as NotificationEntity,
        page_query::{AccountPageParams, AccountPageQuery, Ends, PageQuery, ends},
        view::View,
    },
    transport::{Address, ApiError, ApiResult, JsonResult, PathId, Problem},
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
    AccountPageQuery(query): AccountPageQuery,
) -> ApiResult {
    let (shown, ends) = page(&caller, &query, entities).await?;
    Ok(query.answer(&shown, ends))
}

/// What `write` makes of a page of the account's notifications, with the ends of the page.
pub(crate) async fn page<S, T: Send + 'static>(
    caller: &LoggedIn<S>,
    query: &PageQuery,
    write: fn(&mut Tx<'_>, &View, &[Notification], &Address) -> Result<T, StoreError>,
) -> ApiResult<(T, Option<Ends>)> {
    let (range, filter) = (query.range, filter_of(query)?);
    let (address, view) = (caller.address.clone(), View::new(caller));
    let read = caller.read(move |tx, account| {
        let found = notification::page(tx, account, &filter, &range)?;
        let ends = ends(&found, |found| found.id);
        Ok((write(tx, &view, &found, &address)?, ends))
    });
    read.await
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
fn filter_of(query: &PageQuery) -> ApiResult<NotificationFilter> {
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

fn entities(
    tx: &mut Tx<'_>,
    view: &View,
    found: &[Notification],
    address: &Address,
) -> Result<Vec<NotificationJson>, StoreError> {
    let ids: Vec<AccountId> = found.iter().map(|found| found.from).collect();
    let accounts = AccountEntities::load(tx, &ids, view.viewer, address)?;
    let posts = NotifiedPosts::load(tx, found, view.viewer)?;
    let statuses = posts.entities(tx, view)?;
    let shown = found.iter().filter(|found| posts.shows(found));
    let shown = shown.filter_map(|found| {
        let status = posts.status(found, &statuses);
        Some(NotificationJson {
            id: found.id.to_string(),
            kind: found.kind.name(),
            created_at: iso_8601(found.created_at_ms),
            group_key: group_key(found.id),
            account: accounts.get(found.from)?.to_owned(),
            status: status.map(|(_, status)| status.to_owned()),
        })
    });
    Ok(shown.collect())
}

/// The notifications of an account after one, the earliest first, each as JSON, and the ID of the last one. Those that
/// are not shown have no JSON.
pub(crate) async fn after(
    context: &RequestContext,
    account: LocalAccountId,
    last: LocalId,
) -> ApiResult<(Vec<String>, LocalId)> {
    let range = Range {
        min: Some(last),
        limit: MAX_COUNTED,
        ..Range::default()
    };
    let (address, view) = (context.address.clone(), View::new(context));
    let read = context.read(move |tx| {
        let found = notification::page(tx, account, &NotificationFilter::default(), &range)?;
        let newest = found.first().map_or(last, |newest| newest.id);
        Ok((entities(tx, &view, &found, &address)?, newest))
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
    PathId(id): PathId,
) -> JsonResult<NotificationJson> {
    let address = caller.address.clone();
    let view = View::new(&caller);
    let read = caller.read(move |tx, account| {
        let found = notification::by_id(tx, account, LocalId::new(id))?;
        entities(tx, &view, found.as_slice(), &address)
    });
    found(read.await?.pop())
}

/// How many notifications came after the last one that was read, at most 100.
#[utoipa::path(
    get, path = "/api/v1/notifications/unread_count", tag = "notifications",
    security(("account" = ["read:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn unread_count(caller: LoggedIn<needs::ReadNotifications>) -> JsonResult<UnreadCount> {
    count_unread(&caller).await
}

/// How many notifications are unread, by the name `count`.
pub(crate) type UnreadCount = HashMap<&'static str, usize>;

/// How many notifications came after the account's marker of them.
pub(crate) async fn count_unread<S>(caller: &LoggedIn<S>) -> JsonResult<UnreadCount> {
    let viewer = caller.viewer;
    let count = caller.read(move |tx, account| {
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
        let posts = NotifiedPosts::load(tx, &found, viewer)?;
        Ok(found.iter().filter(|found| posts.shows(found)).count())
    });
    Ok(Json(HashMap::from([("count", count.await?)])))
}

/// Removes all notifications.
#[utoipa::path(
    post, path = "/api/v1/notifications/clear", tag = "notifications",
    security(("account" = ["write:notifications"])),
    responses((status = 200, body = Object)),
)]
async fn clear(caller: LoggedIn<needs::WriteNotifications>) -> JsonResult<Value> {
    remove(&caller, None).await
}

/// Removes a notification.
#[utoipa::path(
    post, path = "/api/v1/notifications/{id}/dismiss", tag = "notifications", params(("id" = NotificationId, Path)),
    security(("account" = ["write:notifications"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn dismiss(
    caller: LoggedIn<needs::WriteNotifications>,
    PathId(id): PathId,
) -> JsonResult<Value> {
    remove(&caller, Some(LocalId::new(id))).await
}

/// Removes a notification of the account, or all.
pub(crate) async fn remove<S>(caller: &LoggedIn<S>, id: Option<LocalId>) -> JsonResult<Value> {
    let removed = caller.write(move |tx, account| notification::dismiss(tx, account, id));
    done(removed.await? || id.is_none())
}

const MAX_COUNTED: u16 = 100;
const UNGROUPED: &str = "ungrouped-";
