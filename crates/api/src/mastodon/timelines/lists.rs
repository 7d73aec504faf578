//! Lists: of accounts and of predicates, which people make, and sources, which are the operator's lists.

use std::{str::FromStr as _, sync::Arc};

use axum::{Json, http::Uri, response::IntoResponse as _};
use driftline_core::social::{ListSettings, Relation, RepliesPolicy};
use driftline_mastodon::List;
use driftline_store::{
    AccountId, LocalAccountId, LocalId, Owner, SourceId, StoreError, Tx, account_id,
    social::{
        list,
        list_member::{self, AddRefused},
        relation,
    },
    source::{self, Source},
    timeline::Range,
};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{LoggedIn, OperatorOrAccount, RequestContext, needs},
    description::ids::{AccountId as AccountIdText, ListId},
    find,
    mastodon::{
        accounts::{account_entities::entities, linked_accounts::AccountIds},
        answer::{done, found},
        bodies::{ListAccounts, ListChange, NewList},
        entities::{Account, List as ListEntity},
        page_query::{AccountPageParams, AccountPageQuery, ends},
        values::{boolean, text},
    },
    transport::{ApiError, ApiResult, JsonResult, Params, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(all, create))
        .routes(routes!(one, set, remove))
        .routes(routes!(accounts, add_accounts, remove_accounts))
        .routes(routes!(with_account))
}

/// The account's lists; the operator's are the sources that are its own and may be read.
#[utoipa::path(
    get, path = "/api/v1/lists", tag = "lists",
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = [ListEntity])),
)]
async fn all(reader: OperatorOrAccount<needs::ReadLists>) -> JsonResult<Vec<List<'static>>> {
    if let Some(account) = reader.viewer.account() {
        let lists = reader.read(move |tx| list::all(tx, account)).await?;
        return Ok(Json(lists.into_iter().map(entity).collect()));
    }
    let sources = reader.read(source::list).await?;
    let readable = sources.into_iter().filter(is_the_operators);
    Ok(Json(readable.map(source_entity).collect()))
}

/// A list.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = ListEntity), (status = 404, body = Problem)),
)]
async fn one(
    reader: OperatorOrAccount<needs::ReadLists>,
    PathId(id): PathId,
) -> JsonResult<List<'static>> {
    if let Some(account) = reader.viewer.account() {
        let list = reader.read(move |tx| list::by_id(tx, account, LocalId::new(id)));
        return found(list.await?.map(entity));
    }
    let source = reader.read(move |tx| source::by_id(tx, SourceId::new(id)));
    let source = source.await?.filter(is_the_operators);
    found(source.map(source_entity))
}

/// Whether a source is a list of the operator's: accounts' own are not shown to them.
pub(crate) fn is_the_operators(source: &Source) -> bool {
    source.readable && source.owner == Owner::Operator
}

/// What a list is created or changed with.
#[derive(Deserialize)]
struct ListParams {
    title: Option<String>,
    replies_policy: Option<String>,
    exclusive: Option<Value>,
    predicate: Option<String>,
    notify: Option<Value>,
}

impl ListParams {
    async fn over(self, known: ListSettings, caller: &RequestContext) -> ApiResult<ListSettings> {
        let policy = self.replies_policy.map(|name| {
            let policy = RepliesPolicy::from_str(&name);
            policy.map_err(|_| {
                ApiError::Unprocessable(format!("'{name}' is not a valid replies_policy"))
            })
        });
        let predicate = match self.predicate {
            Some(text) => {
                let read = find::saved(&text, caller).await;
                Some(read.map_err(|error| ApiError::Unprocessable(format!("predicate: {error}")))?)
            }
            None => known.predicate,
        };
        Ok(ListSettings {
            predicate,
            notify: boolean(self.notify.as_ref()).unwrap_or(known.notify),
            title: self.title.unwrap_or(known.title),
            replies_policy: policy.transpose()?.unwrap_or(known.replies_policy),
            exclusive: boolean(self.exclusive.as_ref()).unwrap_or(known.exclusive),
        })
    }
}

/// Makes a list.
#[utoipa::path(
    post, path = "/api/v1/lists", tag = "lists",
    request_body(content((NewList), (NewList = "application/x-www-form-urlencoded"), (NewList = "multipart/form-data"))),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = ListEntity), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn create(
    caller: LoggedIn<needs::WriteLists>,
    Params(params): Params<ListParams>,
) -> JsonResult<List<'static>> {
    let now_ms = caller.now_ms();
    let new = ListSettings {
        title: String::new(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
        predicate: None,
        notify: false,
    };
    let settings = params.over(new, &caller).await?;
    let created =
        caller.write(move |tx, account| list::create(tx, account, settings.clone(), now_ms));
    let created = created.await?.map_err(ApiError::invalid)?;
    Ok(Json(entity(created)))
}

/// Changes a list.
#[utoipa::path(
    put, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    request_body(content((ListChange), (ListChange = "application/x-www-form-urlencoded"), (ListChange = "multipart/form-data"))),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = ListEntity), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn set(
    caller: LoggedIn<needs::WriteLists>,
    PathId(id): PathId,
    Params(params): Params<ListParams>,
) -> JsonResult<List<'static>> {
    let id = LocalId::new(id);
    let known = caller.read(move |tx, account| list::by_id(tx, account, id));
    let known = known.await?.ok_or(ApiError::NotFound)?;
    let settings = params.over(known.settings, &caller).await?;
    let set = caller.write(move |tx, account| {
        let settings = settings.clone();
        list::set(tx, account, id, settings)
    });
    let set = set.await?.map_err(ApiError::invalid)?;
    found(set.map(entity))
}

/// Removes a list.
#[utoipa::path(
    delete, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove(caller: LoggedIn<needs::WriteLists>, PathId(id): PathId) -> JsonResult<Value> {
    let removed = caller.write(move |tx, account| list::remove(tx, account, LocalId::new(id)));
    done(removed.await?)
}

/// The accounts of a list; all of them with `limit=0`.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}/accounts", tag = "lists", params(("id" = ListId, Path), AccountPageParams),
    security(("account" = ["read:lists"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem), (status = 404, body = Problem)),
)]
async fn accounts(
    caller: LoggedIn<needs::ReadLists>,
    PathId(id): PathId,
    uri: Uri,
    query: ApiResult<AccountPageQuery>,
) -> ApiResult {
    let list = LocalId::new(id);
    let mut params = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let is_whole = params.any(|(name, value)| name == "limit" && value == "0");
    let query = match is_whole {
        true => None,
        false => Some(query?.0),
    };
    let whole = Range {
        limit: u16::MAX,
        ..Range::default()
    };
    let range = query.as_ref().map_or(whole, |query| query.range);
    let members = caller.read(move |tx, account| {
        let is_there = list::by_id(tx, account, list)?.is_some();
        let members = list_member::page(tx, account, list, &range)?;
        Ok(is_there.then_some(members))
    });
    let members = members.await?.ok_or(ApiError::NotFound)?;
    let ends = ends(&members, |member| LocalId::new(member.raw()));
    let shown = entities(&caller, move |_| Ok(members.clone())).await?;
    Ok(match query {
        Some(query) => query.answer(&shown, ends),
        None => Json(shown).into_response(),
    })
}

/// Accounts that are added or removed.
#[derive(Deserialize)]
struct Members {
    account_ids: Option<Value>,
}

impl Members {
    fn ids(&self) -> ApiResult<Vec<AccountId>> {
        let values = match &self.account_ids {
            Some(Value::Array(values)) => values.iter().collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        };
        let ids = values.into_iter().map(|value| text(value)?.parse().ok());
        let ids: Option<Vec<AccountId>> = ids.collect();
        ids.ok_or(ApiError::NotFound)
    }
}

/// Adds accounts that the list's owner follows.
#[utoipa::path(
    post, path = "/api/v1/lists/{id}/accounts", tag = "lists", params(("id" = ListId, Path)),
    request_body(content((ListAccounts), (ListAccounts = "application/x-www-form-urlencoded"), (ListAccounts = "multipart/form-data"))),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = Object), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn add_accounts(
    caller: LoggedIn<needs::WriteLists>,
    PathId(id): PathId,
    Params(members): Params<Members>,
) -> JsonResult<Value> {
    let (list, now_ms, members) = (LocalId::new(id), caller.now_ms(), members.ids()?);
    let members = AccountIds::find_all(&caller, members).await?;
    let added = caller.write(move |tx, account| {
        let members = member_ids(tx, account, list, &members)?;
        list_member::add(tx, account, list, &members, now_ms)
    });
    match added.await? {
        Ok(()) => done(true),
        Err(AddRefused::NoList | AddRefused::NotFollowed) => done(false),
        Err(refused) => Err(ApiError::invalid(refused)),
    }
}

/// The IDs under which accounts are added to a list: for each the one that is already in the list,
/// or the followed one, or the canonical one. Accounts that are named by several IDs are added once.
fn member_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
    members: &[AccountIds],
) -> Result<Vec<AccountId>, StoreError> {
    let known = list_member::of(tx, account, list)?;
    let all: Vec<AccountId> = members.iter().flat_map(|ids| ids.all()).collect();
    let mut relations = relation::to(tx, account, &all)?;
    relations.retain(|row| row.pair.outgoing == Relation::Following);
    let is_followed =
        |id: AccountId| id == account_id(account) || relations.iter().any(|row| row.other == id);
    let ids = members.iter().map(|member| {
        let known = member.all().find(|id| known.contains(id));
        let usable = known.or_else(|| member.all().find(|id| is_followed(*id)));
        usable.unwrap_or(member.canonical_id)
    });
    let mut ids: Vec<AccountId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Removes accounts from a list.
#[utoipa::path(
    delete, path = "/api/v1/lists/{id}/accounts", tag = "lists", params(("id" = ListId, Path)),
    request_body(content((ListAccounts), (ListAccounts = "application/x-www-form-urlencoded"), (ListAccounts = "multipart/form-data"))),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove_accounts(
    caller: LoggedIn<needs::WriteLists>,
    PathId(id): PathId,
    Params(members): Params<Members>,
) -> JsonResult<Value> {
    let (list, members) = (LocalId::new(id), members.ids()?);
    let members = AccountIds::find_all(&caller, members).await?.into_iter();
    let members: Vec<AccountId> = members.flat_map(AccountIds::all).collect();
    let removed = caller.write(move |tx, account| list_member::remove(tx, account, list, &members));
    done(removed.await?)
}

/// The caller's lists that have an account.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/lists", tag = "lists", params(("id" = AccountIdText, Path)),
    security(("account" = ["read:lists"])),
    responses((status = 200, body = [ListEntity])),
)]
async fn with_account(
    caller: LoggedIn<needs::ReadLists>,
    PathId(id): PathId,
) -> JsonResult<Vec<List<'static>>> {
    let member = AccountIds::find(&caller, AccountId::new(id)).await?;
    let lists = caller.read(move |tx, account| {
        let mut with = Vec::new();
        for id in member.all() {
            with.extend(list_member::lists_with(tx, account, id)?);
        }
        let mut lists = list::all(tx, account)?;
        lists.retain(|list| with.contains(&list.id));
        Ok(lists)
    });
    Ok(Json(lists.await?.into_iter().map(entity).collect()))
}

fn entity(list: list::List) -> List<'static> {
    let notify = list.has_predicate().then_some(list.settings.notify);
    let predicate = list.settings.predicate;
    List {
        id: list.id.to_string().into(),
        title: list.settings.title.into(),
        replies_policy: list.settings.replies_policy.name().into(),
        exclusive: list.settings.exclusive,
        predicate: predicate.map(|predicate| predicate.to_string().into()),
        predicate_error: list.unreadable.map(Into::into),
        notify,
        feed: list.feed.map(|readers| readers.name().into()),
    }
}

fn source_entity(source: Source) -> List<'static> {
    List {
        id: source.id.to_string().into(),
        title: source.name.into(),
        replies_policy: "list".into(),
        exclusive: false,
        predicate: None,
        predicate_error: None,
        notify: None,
        feed: None,
    }
}
