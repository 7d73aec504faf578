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
    mastodon::entities::CustomEmoji,
};

/// Routes that answer an empty list, with who may ask for it, and the function that merges them.
macro_rules! empty_lists {
    ($($(#[doc = $doc:literal])+ $name:ident($($caller:ty)?): $path:literal, $tag:literal, $security:tt, $entity:ident;)+) => {
        $(
            $(#[doc = $doc])+
            #[utoipa::path(
                get, path = $path, tag = $tag, security $security,
                responses((status = 200, body = [$entity])),
            )]
            async fn $name($(_: $caller)?) -> Json<[(); 0]> {
                Json([])
            }
        )+

        fn empty_lists() -> OpenApiRouter<Arc<App>> {
            OpenApiRouter::new()$(.routes(routes!($name)))+
        }
    };
}

empty_lists! {
    /// The rules of this server, which has none.
    rules(): "/api/v1/instance/rules", "server", (()), Object;
    /// The servers that this one blocks: none.
    domain_blocks(): "/api/v1/instance/domain_blocks", "server", (()), Object;
    /// Tags that are used more than before: they are not counted.
    trending_tags(): "/api/v1/trends/tags", "server", (()), Object;
    /// Posts that are read more than others: they are not counted.
    trending_posts(): "/api/v1/trends/statuses", "server", (()), Object;
    /// Links that are posted more than before: they are not counted.
    trending_links(): "/api/v1/trends/links", "server", (()), Object;
    /// What this server announces to its people: nothing.
    announcements(LoggedIn<needs::NoScope>): "/api/v1/announcements", "server", (("account" = [])), Object;
    /// The tags that the account follows, which it cannot.
    followed_tags(LoggedIn<needs::ReadFollows>): "/api/v1/followed_tags", "server", (("account" = ["read:follows"])), Object;
    /// Conversations between few, which are not told apart.
    conversations(LoggedIn<needs::ReadStatuses>): "/api/v1/conversations", "timelines", (("account" = ["read:statuses"])), Object;
    /// The posts that the account will post, which it cannot.
    scheduled_posts(LoggedIn<needs::ReadStatuses>): "/api/v1/scheduled_statuses", "statuses", (("account" = ["read:statuses"])), Object;
    /// Accounts that this server suggests to follow: none.
    suggestions(LoggedIn<needs::Read>): "/api/v2/suggestions", "accounts", (("account" = ["read"])), Object;
    /// The same, as older apps ask for it.
    suggestions_v1(LoggedIn<needs::Read>): "/api/v1/suggestions", "accounts", (("account" = ["read"])), Object;
    /// The accounts that the account features, which it cannot.
    endorsements(LoggedIn<needs::ReadAccounts>): "/api/v1/endorsements", "accounts", (("account" = ["read:accounts"])), Object;
    /// The tags that the account features, which it cannot.
    featured_tags(LoggedIn<needs::ReadAccounts>): "/api/v1/featured_tags", "accounts", (("account" = ["read:accounts"])), Object;
    /// The tags that it uses most: they are not counted.
    featured_tag_suggestions(LoggedIn<needs::ReadAccounts>): "/api/v1/featured_tags/suggestions", "accounts", (("account" = ["read:accounts"])), Object;
    /// The notifications that are filtered: none.
    notification_requests(LoggedIn<needs::ReadNotifications>): "/api/v1/notifications/requests", "notifications", (("account" = ["read:notifications"])), Object;
    /// The accounts that ask to be found, which this server shows to none.
    directory(): "/api/v1/directory", "accounts", (()), Object;
    /// What happened in each week: it is not counted.
    activity(): "/api/v1/instance/activity", "server", (()), Object;
    /// The hosts that the account blocks: none.
    blocked_hosts(LoggedIn<needs::ReadBlocks>): "/api/v1/domain_blocks", "accounts", (("account" = ["read:blocks"])), String;
    /// The custom emojis of this server, which has none.
    custom_emojis(): "/api/v1/custom_emojis", "server", (()), CustomEmoji;
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    empty_lists()
        .routes(routes!(extended_description))
        .routes(routes!(translation_languages))
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

/// The languages between which posts are translated: none.
#[utoipa::path(
    get, path = "/api/v1/instance/translation_languages", tag = "server", security(()),
    responses((status = 200, body = Object)),
)]
async fn translation_languages() -> Json<Map<String, Value>> {
    Json(Map::new())
}
