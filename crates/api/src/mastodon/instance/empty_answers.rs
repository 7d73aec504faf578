//! What apps ask for as they start, and of which this server has nothing: an empty answer says so, where 404 would
//! make some of them show an error.

use std::sync::Arc;

use axum::Json;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{LoggedIn, needs},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(rules))
        .routes(routes!(extended_description))
        .routes(routes!(domain_blocks))
        .routes(routes!(translation_languages))
        .routes(routes!(trending_tags))
        .routes(routes!(trending_posts))
        .routes(routes!(trending_links))
        .routes(routes!(announcements))
        .routes(routes!(followed_tags))
        .routes(routes!(conversations))
        .routes(routes!(scheduled_posts))
        .routes(routes!(suggestions))
        .routes(routes!(suggestions_v1))
        .routes(routes!(endorsements))
        .routes(routes!(featured_tags))
        .routes(routes!(featured_tag_suggestions))
        .routes(routes!(notification_requests))
        .routes(routes!(directory))
        .routes(routes!(activity))
}

type Nothing = Json<[(); 0]>;

/// The rules of this server, which has none.
#[utoipa::path(
    get, path = "/api/v1/instance/rules", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn rules() -> Nothing {
    Json([])
}

/// The entity `ExtendedDescription`.
#[derive(Serialize, ToSchema)]
struct ExtendedDescription {
    /// When it was written: never.
    #[schema(value_type = Option<String>)]
    updated_at: Option<&'static str>,
    /// HTML.
    #[schema(value_type = String)]
    content: &'static str,
}

/// The long description of this server, which has none.
#[utoipa::path(
    get, path = "/api/v1/instance/extended_description", tag = "server", security(()),
    responses((status = 200, body = ExtendedDescription)),
)]
async fn extended_description() -> Json<ExtendedDescription> {
    Json(ExtendedDescription {
        updated_at: None,
        content: "",
    })
}

/// The servers that this one blocks: none.
#[utoipa::path(
    get, path = "/api/v1/instance/domain_blocks", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn domain_blocks() -> Nothing {
    Json([])
}

/// The languages between which posts are translated: none.
#[utoipa::path(
    get, path = "/api/v1/instance/translation_languages", tag = "server", security(()),
    responses((status = 200, body = Object)),
)]
async fn translation_languages() -> Json<Map<String, Value>> {
    Json(Map::new())
}

/// Tags that are used more than before: they are not counted.
#[utoipa::path(
    get, path = "/api/v1/trends/tags", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn trending_tags() -> Nothing {
    Json([])
}

/// Posts that are read more than others: they are not counted.
#[utoipa::path(
    get, path = "/api/v1/trends/statuses", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn trending_posts() -> Nothing {
    Json([])
}

/// Links that are posted more than before: they are not counted.
#[utoipa::path(
    get, path = "/api/v1/trends/links", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn trending_links() -> Nothing {
    Json([])
}

/// What this server announces to its people: nothing.
#[utoipa::path(
    get, path = "/api/v1/announcements", tag = "server", security(("account" = [])),
    responses((status = 200, body = [Object])),
)]
async fn announcements(_: LoggedIn<needs::NoScope>) -> Nothing {
    Json([])
}

/// The tags that the account follows, which it cannot.
#[utoipa::path(
    get, path = "/api/v1/followed_tags", tag = "server", security(("account" = ["read:follows"])),
    responses((status = 200, body = [Object])),
)]
async fn followed_tags(_: LoggedIn<needs::ReadFollows>) -> Nothing {
    Json([])
}

/// Conversations between few, which are not told apart.
#[utoipa::path(
    get, path = "/api/v1/conversations", tag = "timelines", security(("account" = ["read:statuses"])),
    responses((status = 200, body = [Object])),
)]
async fn conversations(_: LoggedIn<needs::ReadStatuses>) -> Nothing {
    Json([])
}

/// The posts that the account will post, which it cannot.
#[utoipa::path(
    get, path = "/api/v1/scheduled_statuses", tag = "statuses", security(("account" = ["read:statuses"])),
    responses((status = 200, body = [Object])),
)]
async fn scheduled_posts(_: LoggedIn<needs::ReadStatuses>) -> Nothing {
    Json([])
}

/// Accounts that this server suggests to follow: none.
#[utoipa::path(
    get, path = "/api/v2/suggestions", tag = "accounts", security(("account" = ["read"])),
    responses((status = 200, body = [Object])),
)]
async fn suggestions(_: LoggedIn<needs::Read>) -> Nothing {
    Json([])
}

/// The same, as older apps ask for it.
#[utoipa::path(
    get, path = "/api/v1/suggestions", tag = "accounts", security(("account" = ["read"])),
    responses((status = 200, body = [Object])),
)]
async fn suggestions_v1(_: LoggedIn<needs::Read>) -> Nothing {
    Json([])
}

/// The accounts that the account features, which it cannot.
#[utoipa::path(
    get, path = "/api/v1/endorsements", tag = "accounts", security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Object])),
)]
async fn endorsements(_: LoggedIn<needs::ReadAccounts>) -> Nothing {
    Json([])
}

/// The tags that the account features, which it cannot.
#[utoipa::path(
    get, path = "/api/v1/featured_tags", tag = "accounts", security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Object])),
)]
async fn featured_tags(_: LoggedIn<needs::ReadAccounts>) -> Nothing {
    Json([])
}

/// The tags that it uses most: they are not counted.
#[utoipa::path(
    get, path = "/api/v1/featured_tags/suggestions", tag = "accounts", security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Object])),
)]
async fn featured_tag_suggestions(_: LoggedIn<needs::ReadAccounts>) -> Nothing {
    Json([])
}

/// The notifications that are filtered: none.
#[utoipa::path(
    get, path = "/api/v1/notifications/requests", tag = "notifications", security(("account" = ["read:notifications"])),
    responses((status = 200, body = [Object])),
)]
async fn notification_requests(_: LoggedIn<needs::ReadNotifications>) -> Nothing {
    Json([])
}

/// The accounts that ask to be found, which this server shows to none.
#[utoipa::path(
    get, path = "/api/v1/directory", tag = "accounts", security(()),
    responses((status = 200, body = [Object])),
)]
async fn directory() -> Nothing {
    Json([])
}

/// What happened in each week: it is not counted.
#[utoipa::path(
    get, path = "/api/v1/instance/activity", tag = "server", security(()),
    responses((status = 200, body = [Object])),
)]
async fn activity() -> Nothing {
    Json([])
}
