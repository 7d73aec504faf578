//! Accounts, and what they wrote.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use driftline_core::{
    acct::{AcctKey, acct_at},
    social::{AccountName, Direction, Relation},
};
use driftline_mastodon::{RawObject, has_media};
use driftline_store::{
    AccountId, StoreError, Tx, account, account_id, local_account_id,
    social::{local_account, relation},
    timeline::{self, Range, TimelinePost, Viewer},
    viewer::ReadableSources,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::{AccountEntities, known_accounts},
    related_accounts::{RelatedQuery, relation_page},
    relations::{IdsParams, IdsQuery},
};
use crate::{
    App,
    auth::{LoggedIn, MayRead, needs},
    description::ids::AccountId as AccountIdText,
    mastodon::{
        answer,
        entities::{Account, Status, Tag},
        page::Page,
        page_query::{AccountPageParams, PageParams, PageQuery},
        view::View,
    },
    transport::{Address, ApiError, Params, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(look_up))
        .routes(routes!(search))
        .routes(routes!(one))
        .routes(routes!(statuses))
        .routes(routes!(followers))
        .routes(routes!(following))
        .routes(routes!(featured_tags))
}

/// Accounts in an answer, which borrow nothing.
pub(crate) type Entities = Vec<Box<RawValue>>;

/// An account.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}", tag = "accounts", params(("id" = AccountIdText, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = Account), (status = 404, body = Problem)),
)]
async fn one(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Box<RawValue>>, ApiError> {
    entity(&app, AccountId::new(id), caller.viewer(), address).await
}

/// What a name is looked up with.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LookUp {
    /// `name`, or `name@host`.
    acct: String,
}

/// The account of an `acct`.
#[utoipa::path(
    get, path = "/api/v1/accounts/lookup", tag = "accounts", params(LookUp),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = Account), (status = 404, body = Problem)),
)]
async fn look_up(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
    Params(LookUp { acct }): Params<LookUp>,
) -> Result<Json<Box<RawValue>>, ApiError> {
    let domain = address.domain().to_owned();
    let find = move |tx: &mut Tx<'_>| named(tx, &acct, &domain);
    let id = app.store.read(find).await?.ok_or(ApiError::NotFound)?;
    entity(&app, id, caller.viewer(), address).await
}

/// The account of an `acct`, be it of this server or an author's.
pub(crate) fn named(
    tx: &mut Tx<'_>,
    acct: &str,
    domain: &str,
) -> Result<Option<AccountId>, StoreError> {
    let acct = acct.trim().trim_start_matches('@');
    let name = match acct.split_once('@') {
        Some((name, host)) if host.eq_ignore_ascii_case(domain) => Some(name),
        Some(_) => None,
        None => Some(acct),
    };
    let Some(name) = name else {
        let key = AcctKey::of(acct, "");
        return Ok(key.map(|key| AccountId::new(key.account_id())));
    };
    let Ok(name) = AccountName::new(name) else {
        return Ok(None);
    };
    let found = local_account::by_name(tx, &name)?;
    Ok(found.map(|account| account_id(account.id)))
}

async fn entity(
    app: &App,
    id: AccountId,
    viewer: Viewer,
    address: Address,
) -> Result<Json<Box<RawValue>>, ApiError> {
    let found = entities(app, viewer, address, move |_| Ok(vec![id])).await?;
    let found = found.into_iter().next();
    Ok(Json(found.ok_or(ApiError::NotFound)?))
}

/// The accounts that `find` finds, in its order, without those of which the viewer does not know.
pub(crate) async fn entities(
    app: &App,
    viewer: Viewer,
    address: Address,
    find: impl Fn(&mut Tx<'_>) -> Result<Vec<AccountId>, StoreError> + Send + 'static,
) -> Result<Entities, ApiError> {
    answer::read(app, move |tx| {
        let ids = find(tx)?;
        let entities = AccountEntities::load(tx, &ids, viewer, &address)?;
        let found = entities.in_order(ids).into_iter().map(ToOwned::to_owned);
        Ok(found.collect())
    })
    .await
}

/// Several accounts, by their IDs, in that order: those that the caller may know of.
#[utoipa::path(
    get, path = "/api/v1/accounts", tag = "accounts", params(IdsParams),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Account]), (status = 400, body = Problem, description = "Too many IDs")),
)]
pub(crate) async fn several(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    IdsQuery(ids): IdsQuery,
    address: Address,
) -> Result<Json<Entities>, ApiError> {
    let found = entities(&app, caller.viewer(), address, move |_| Ok(ids.clone()));
    Ok(Json(found.await?))
}

/// What accounts are searched with.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Search {
    q: String,
    #[param(value_type = Option<u32>)]
    limit: Option<Value>,
    #[param(value_type = Option<u32>)]
    offset: Option<Value>,
    /// Only those whom the account follows.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    following: Option<Value>,
    /// Whether the account of a name with a host of which the account does not know is asked of a server.
    #[serde(default)]
    #[param(value_type = Option<bool>)]
    resolve: Option<Value>,
}

/// Accounts whose names begin with a text, or the one whose profile has that address.
#[utoipa::path(
    get, path = "/api/v1/accounts/search", tag = "accounts", params(Search),
    security(("account" = ["read:accounts"])),
    responses((status = 200, body = [Account])),
)]
async fn search(
    caller: LoggedIn<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    address: Address,
    Params(search): Params<Search>,
) -> Result<Json<Entities>, ApiError> {
    let viewer = Viewer::Account(caller.account.id);
    let limit = number(search.limit.as_ref(), 40, 80)?;
    let offset = number(search.offset.as_ref(), 0, 10_000)?;
    let only_followed = is_true(search.following.as_ref());
    let is_asked = is_true(search.resolve.as_ref()) && offset == 0;
    if acct_at(&search.q).is_some() && !only_followed && offset == 0 {
        let found = at(&app, viewer, address, &search.q, is_asked).await?;
        return Ok(Json(found));
    }
    if is_asked {
        resolve(&app, viewer, &address, &search.q).await?;
    }
    let found = found(&app, viewer, address, search.q, only_followed).await?;
    Ok(Json(found.into_iter().skip(offset).take(limit).collect()))
}

/// Fetches the account of a name with a host of which a viewer with an account does not know. What came of it is in the
/// store, or is not known now.
pub(crate) async fn resolve(
    app: &App,
    viewer: Viewer,
    address: &Address,
    text: &str,
) -> Result<(), ApiError> {
    let name = text.trim().trim_start_matches('@');
    let Some((_, host)) = name.split_once('@') else {
        return Ok(());
    };
    if viewer == Viewer::Anonymous || host.eq_ignore_ascii_case(address.domain()) {
        return Ok(());
    }
    let Some(key) = AcctKey::of(name, "") else {
        return Ok(());
    };
    let id = AccountId::new(key.account_id());
    // By what the viewer sees alone: whether others know of the account changes nothing.
    let known = entities(app, viewer, address.clone(), move |_| Ok(vec![id])).await?;
    if known.is_empty() {
        let _ = app.mirror.fetch_account(viewer, name.to_owned()).await;
    }
    Ok(())
}

/// The account whose profile has an address, if it is one that the account's server gives it. Where the viewer does
/// not know of it, it is asked of a server if `is_asked`.
pub(crate) async fn at(
    app: &App,
    viewer: Viewer,
    address: Address,
    text: &str,
    is_asked: bool,
) -> Result<Entities, ApiError> {
    let Some(acct) = acct_at(text) else {
        return Ok(Entities::new());
    };
    if is_asked {
        resolve(app, viewer, &address, &acct).await?;
    }
    let domain = address.domain().to_owned();
    let mut found = entities(app, viewer, address, move |tx| {
        Ok(named(tx, &acct, &domain)?.into_iter().collect())
    })
    .await?;
    found.retain(|account| has_address(account.get(), text));
    Ok(found)
}

/// Whether an entity `Account` has an address.
fn has_address(account: &str, address: &str) -> bool {
    #[derive(Deserialize)]
    struct Addresses {
        url: Option<String>,
        uri: Option<String>,
    }
    let plain = |text: &str| text.trim().trim_end_matches('/').to_ascii_lowercase();
    let Ok(Addresses { url, uri }) = serde_json::from_str(account) else {
        return false;
    };
    [url, uri]
        .into_iter()
        .flatten()
        .any(|own| plain(&own) == plain(address))
}

/// The accounts whose names begin so.
pub(crate) async fn found(
    app: &App,
    viewer: Viewer,
    address: Address,
    text: String,
    only_followed: bool,
) -> Result<Entities, ApiError> {
    let domain = address.domain().to_owned();
    entities(app, viewer, address, move |tx| {
        let mut ids = beginning_with(tx, &text, &domain, viewer)?;
        if let Viewer::Account(account) = viewer
            && only_followed
        {
            let related = relation::to(tx, account, &ids)?;
            let is_followed = |id: &AccountId| {
                let mut related = related.iter();
                related.any(|row| row.other == *id && row.pair.outgoing == Relation::Following)
            };
            ids.retain(is_followed);
        }
        Ok(ids)
    })
    .await
}

/// The accounts whose names begin so and of which a viewer may know, at most [`MAX_FOUND`] of this server and as many
/// of others.
fn beginning_with(
    tx: &mut Tx<'_>,
    text: &str,
    domain: &str,
    viewer: Viewer,
) -> Result<Vec<AccountId>, StoreError> {
    let text = text.trim().trim_start_matches('@').to_ascii_lowercase();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids = Vec::new();
    if text.contains('@') {
        ids.extend(named(tx, &text, domain)?);
    } else {
        let local = local_account::beginning_with(tx, &text, MAX_FOUND)?;
        ids.extend(local.into_iter().map(|account| account_id(account.id)));
    }
    let sources = ReadableSources::load(tx, viewer)?.keys();
    let mut after = String::new();
    let most = ids.len() + MAX_FOUND as usize;
    // Names that the viewer may not know of take no place from those that it may.
    while ids.len() < most {
        let page = account::beginning_with(tx, (&text, &after), &sources, MAX_FOUND)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        let page: Vec<AccountId> = page.into_iter().map(|(_, id)| id).collect();
        let known = known_accounts(tx, &page, viewer)?;
        let new = page.into_iter().filter(|id| known.contains(id));
        for id in new.take(most - ids.len()) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

/// What an account wrote, as far as the caller may read it.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/statuses", tag = "accounts", params(("id" = AccountIdText, Path), StatusParams, PageParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 404, body = Problem)),
)]
async fn statuses(
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let (viewer, author) = (caller.viewer(), AccountId::new(id));
    let known = entities(&app, viewer, address.clone(), move |_| Ok(vec![author])).await?;
    if known.is_empty() {
        return Err(ApiError::NotFound);
    }
    let filter = Arc::new(StatusFilter::of(&query));
    let page = if filter.takes_nothing || local_account_id(author).is_some() {
        let view = View::of(&app, viewer);
        answer::read(&app, move |tx| Page::write(tx, &[], &view)).await?
    } else {
        let read = move |tx: &mut Tx<'_>, range: &Range| {
            let picks = |post: &TimelinePost| filter.takes(post);
            let picks: Option<timeline::Picks<'_>> = if filter.takes_all() {
                None
            } else {
                Some(&picks)
            };
            timeline::by_author(tx, range, viewer, author, picks).map(Some)
        };
        Page::picked(&app, query.range, viewer, read).await?
    };
    let path = format!("/api/v1/accounts/{id}/statuses");
    Ok(page.answer(&address, &path, &query))
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
    fn of(query: &PageQuery) -> Self {
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: RelatedQuery,
) -> Result<Response, ApiError> {
    let path = format!("/api/v1/accounts/{id}/followers");
    let viewer = Viewer::Account(caller.account.id);
    let of = (AccountId::new(id), Direction::Incoming);
    related(&app, viewer, of, address, (&path, query)).await
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: RelatedQuery,
) -> Result<Response, ApiError> {
    let path = format!("/api/v1/accounts/{id}/following");
    let viewer = Viewer::Account(caller.account.id);
    let of = (AccountId::new(id), Direction::Outgoing);
    related(&app, viewer, of, address, (&path, query)).await
}

async fn related(
    app: &App,
    viewer: Viewer,
    (id, direction): (AccountId, Direction),
    address: Address,
    (path, query): (&str, RelatedQuery),
) -> Result<Response, ApiError> {
    let known = entities(app, viewer, address.clone(), move |_| Ok(vec![id])).await?;
    if known.is_empty() {
        return Err(ApiError::NotFound);
    }
    let Some(account) = local_account_id(id) else {
        return Ok(query.page.answer(&address, path, &Entities::new(), None));
    };
    relation_page(
        app,
        viewer,
        account,
        (direction, Relation::Following),
        address,
        (path, query),
    )
    .await
}

/// The tags that an account features: none.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/featured_tags", tag = "accounts", params(("id" = AccountIdText, Path)),
    security((), ("account" = ["read:accounts"])),
    responses((status = 200, body = [Tag]), (status = 404, body = Problem)),
)]
async fn featured_tags(
    MayRead(caller, _): MayRead<needs::ReadAccounts>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<[u8; 0]>, ApiError> {
    let account = AccountId::new(id);
    let _known = entity(&app, account, caller.viewer(), address).await?;
    Ok(Json([]))
}

/// A whole number of a request, as JSON or as a form has it; at most `max`.
pub(crate) fn number(value: Option<&Value>, default: usize, max: usize) -> Result<usize, ApiError> {
    let parsed = match value {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::String(text)) if text.is_empty() => return Ok(default),
        Some(Value::String(text)) => text.parse::<u64>().ok(),
        Some(value) => value.as_u64(),
    };
    let parsed = parsed.ok_or_else(|| {
        ApiError::BadParameter("limit and offset have to be whole numbers".to_owned())
    })?;
    Ok(usize::try_from(parsed).unwrap_or(max).min(max))
}

/// Whether a value of a request is true.
pub(crate) fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => *value,
        Some(Value::String(text)) => crate::mastodon::page_query::is_true(text),
        Some(Value::Number(number)) => number.as_i64() != Some(0),
        _ => false,
    }
}

/// More are not looked through.
const MAX_FOUND: u32 = 400;
