//! Accounts by their IDs, and what they wrote.

use std::sync::Arc;

use axum::Json;
use driftline_core::social::{Direction, Relation};
use driftline_mastodon::{RawObject, has_media};
use driftline_store::{
    AccountId, Tx, local_account_id,
    timeline::{self, Range, TimelinePost},
};
use serde_json::value::RawValue;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::{Entities, entities, entity},
    ids_query::{IdsParams, IdsQuery},
    linked_accounts::is_own,
    related_accounts::relation_page,
};
use crate::{
    App,
    auth::{LoggedIn, MayRead, RequestContext, needs},
    description::ids::AccountId as AccountIdText,
    mastodon::{
        entities::{Account, Status, Tag},
        page::Page,
        page_query::{AccountPageParams, AccountPageQuery, PageParams, PageQuery},
    },
    transport::{ApiResult, JsonResult, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(one))
        .routes(routes!(statuses))
        .routes(routes!(followers))
        .routes(routes!(following))
        .routes(routes!(featured_tags))
}

/// An account.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}", tag = "accounts", params(("id" = AccountIdText, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = Account), (status = 404, body = Problem)),
)]
async fn one(
    reader: MayRead<needs::ReadAccounts>,
    PathId(id): PathId,
) -> JsonResult<Box<RawValue>> {
    entity(&reader, AccountId::new(id)).await.map(Json)
}

/// Several accounts, by their IDs, in that order: those that the caller may know of.
#[utoipa::path(
    get, path = "/api/v1/accounts", tag = "accounts", params(IdsParams),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Account]), (status = 400, body = Problem, description = "Too many IDs")),
)]
pub(crate) async fn several(
    reader: MayRead<needs::ReadAccounts>,
    IdsQuery(ids): IdsQuery,
) -> JsonResult<Entities> {
    let found = entities(&reader, move |_| Ok(ids.clone()));
    Ok(Json(found.await?))
}

/// What an account wrote, as far as the caller may read it.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/statuses", tag = "accounts", params(("id" = AccountIdText, Path), StatusParams, PageParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 404, body = Problem)),
)]
async fn statuses(
    reader: MayRead<needs::ReadStatuses>,
    PathId(id): PathId,
    query: PageQuery,
) -> ApiResult {
    let (viewer, author) = (reader.viewer, AccountId::new(id));
    let account = entity(&reader, author).await?;
    let filter = Arc::new(StatusFilter::new(&query));
    // Posts that other servers show under the name of an account of this server are not its own.
    if filter.takes_nothing || is_own(&account, &reader.address) {
        return Ok(Page::empty().answer(&query));
    }
    let read = move |tx: &mut Tx<'_>, range: &Range| {
        let picks = |post: &TimelinePost| filter.takes(post);
        let picks: Option<timeline::Picks<'_>> = if filter.takes_all() {
            None
        } else {
            Some(&picks)
        };
        timeline::by_author(tx, range, viewer, author, picks).map(Some)
    };
    let page = Page::picked(&reader, query.range, read).await?;
    Ok(page.answer(&query))
}

/// Which of what an account wrote.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct StatusParams {
    exclude_replies: Option<bool>,
    exclude_reblogs: Option<bool>,
    /// Only with that tag.
    tagged: Option<String>,
    /// Only pinned ones: none.
    pinned: Option<bool>,
}

/// Which posts of an account are asked for.
#[derive(Debug)]
struct StatusFilter {
    only_media: bool,
    without_replies: bool,
    without_boosts: bool,
    tag: Option<String>,
    /// Pinned posts alone, which mirrored accounts have none of here.
    takes_nothing: bool,
}

impl StatusFilter {
    fn new(query: &PageQuery) -> Self {
        Self {
            only_media: query.only_media,
            without_replies: query.is_set("exclude_replies"),
            without_boosts: query.is_set("exclude_reblogs"),
            tag: query.text("tagged").map(str::to_lowercase),
            takes_nothing: query.is_set("pinned"),
        }
    }

    fn takes_all(&self) -> bool {
        !self.only_media && !self.without_replies && !self.without_boosts && self.tag.is_none()
    }

    fn takes(&self, post: &TimelinePost) -> bool {
        if self.without_boosts && post.boost_of.is_some()
            || self.only_media && !has_media(&post.raw)
        {
            return false;
        }
        let status = RawObject::parse(&post.raw).unwrap_or_default();
        let is_reply = || {
            let replied_to = status.id("in_reply_to_account_id");
            // Threads of one's own are no replies.
            status.id("in_reply_to_id").is_some() && replied_to != status.object("account").id("id")
        };
        if self.without_replies && is_reply() {
            return false;
        }
        let is_tag = |tag: &str| {
            let mut tags = status.objects("tags");
            tags.any(|found| {
                found
                    .text("name")
                    .is_some_and(|name| name.to_lowercase() == tag)
            })
        };
        self.tag.as_deref().is_none_or(is_tag)
    }
}

/// The accounts of this server that follow an account.
///
/// Who follows an author of posts that were read is known to nobody else.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/followers", tag = "accounts", params(("id" = AccountIdText, Path), AccountPageParams),
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 404, body = Problem)),
)]
async fn followers(
    caller: LoggedIn<needs::ReadAccounts>,
    PathId(id): PathId,
    query: AccountPageQuery,
) -> ApiResult {
    related(&caller, AccountId::new(id), Direction::Incoming, query).await
}

/// Whom an account of this server follows.
///
/// As far as the caller knows of them.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/following", tag = "accounts", params(("id" = AccountIdText, Path), AccountPageParams),
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 404, body = Problem)),
)]
async fn following(
    caller: LoggedIn<needs::ReadAccounts>,
    PathId(id): PathId,
    query: AccountPageQuery,
) -> ApiResult {
    related(&caller, AccountId::new(id), Direction::Outgoing, query).await
}

async fn related(
    context: &RequestContext,
    id: AccountId,
    direction: Direction,
    query: AccountPageQuery,
) -> ApiResult {
    entity(context, id).await?;
    match local_account_id(id) {
        Some(id) => relation_page(context, id, direction, Relation::Following, query).await,
        None => Ok(query.0.answer(&Entities::new(), None)),
    }
}

/// The tags that an account features: none.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/featured_tags", tag = "accounts", params(("id" = AccountIdText, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Tag]), (status = 404, body = Problem)),
)]
async fn featured_tags(
    reader: MayRead<needs::ReadAccounts>,
    PathId(id): PathId,
) -> JsonResult<[u8; 0]> {
    entity(&reader, AccountId::new(id)).await?;
    Ok(Json([]))
}
