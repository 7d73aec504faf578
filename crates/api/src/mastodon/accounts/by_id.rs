//! Accounts by their IDs, and what they wrote.

use std::sync::Arc;

use axum::Json;
use driftline_core::{
    predicate::{Attachment, Condition, Connective, PostTrait, Term, Tree},
    social::{Direction, Relation},
};
use driftline_mastodon::reply_to;
use driftline_store::{
    AccountId, StoreError, Tx, local_account_id,
    timeline::{self, Pick, Range, TimelinePost},
    viewer::ReadableSources,
};
use serde_json::value::RawValue;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::{Entities, entities, entity},
    ids_query::{IdsParams, IdsQuery},
    linked_accounts::{AccountIds, is_own},
    related_accounts::relation_page,
};
use crate::{
    App,
    auth::{LoggedIn, MayRead, RequestContext, needs},
    description::ids::AccountId as AccountIdText,
    find::{Search, SearchError, Selection, bad_query},
    mastodon::{
        entities::{Account, Status, Tag},
        page::Page,
        page_query::{AccountPageParams, AccountPageQuery, MediaParams, PageParams, PageQuery},
        timelines::{hidden_posts::HiddenPosts, tags::tag_tree},
    },
    transport::{Address, ApiResult, JsonResult, PathId, Problem},
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
    get, path = "/api/v1/accounts/{id}/statuses", tag = "accounts", params(("id" = AccountIdText, Path), StatusParams, PageParams, MediaParams),
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
    // Mirrored accounts have no pinned posts here, and posts that other servers show under the name
    // of an account of this server are not its own.
    if query.is_set("pinned") || is_own(&account, &reader.address) {
        return Ok(Page::empty().answer(&query));
    }
    let search = search_for(&query, &reader.address).map_err(|error| bad_query(&error))?;
    let search = Arc::new((search, query.is_set("exclude_replies")));
    let read = move |tx: &mut Tx<'_>, range: &Range| {
        let (search, without_replies) = &*search;
        let readable = ReadableSources::load(tx, viewer)?;
        let load = |search| Selection::load(tx, search, &readable, HiddenPosts::default());
        let picks = AuthorsPosts {
            selection: search.as_ref().map(load).transpose()?,
            without_replies: *without_replies,
        };
        let all = picks.selection.is_none() && !picks.without_replies;
        let picks: Option<timeline::Picks<'_>> = if all { None } else { Some(&picks) };
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

/// A search for the posts that are asked for; `None` for all of an account's.
fn search_for(query: &PageQuery, address: &Address) -> Result<Option<Search>, SearchError> {
    let term = |condition| Tree::atom(Term::Condition(condition));
    let media = query
        .only_media
        .then(|| term(Condition::Has(Attachment::Media)));
    let tag = query.text("tagged").and_then(tag_tree);
    let is_set = query.is_set("exclude_reblogs");
    let originals = is_set.then(|| term(Condition::Is(PostTrait::Boost)).negated());
    let tree = Connective::And.join_all([media, tag, originals].into_iter().flatten());
    tree.map(|tree| Search::for_tree(tree, address)).transpose()
}

/// Which posts of an account are asked for.
struct AuthorsPosts<'s> {
    selection: Option<Selection<'s>>,
    without_replies: bool,
}

impl Pick for AuthorsPosts<'_> {
    fn pick(
        &self,
        tx: &mut Tx<'_>,
        mut posts: Vec<TimelinePost>,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        // Threads of one's own are no replies here, but `is:reply`.
        posts.retain(|post| !self.without_replies || reply_to(&post.raw).is_none());
        match &self.selection {
            Some(selection) => selection.pick(tx, posts),
            None => Ok(posts),
        }
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
    let id = AccountIds::find(context, id).await?.canonical_id;
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
