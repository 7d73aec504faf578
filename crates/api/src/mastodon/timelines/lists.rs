//! Lists: of accounts, which people make, and sources, which are the operator's lists.

use std::{str::FromStr as _, sync::Arc};

use axum::{
    Json,
    extract::{RawQuery, State},
    response::Response,
};
use driftline_core::social::{ListSettings, RepliesPolicy};
use driftline_mastodon::List;
use driftline_store::{
    AccountId, LocalId, Owner, SourceId, StoreError, Tx,
    social::{
        list::{self, ListRefused},
        list_member::{self, AddRefused},
        local_account,
    },
    source::{self, Source},
    timeline::{Range, Viewer},
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use utoipa_axum::{router::OpenApiRouter, routes};

use super::markers::text;
use crate::{
    App,
    auth::{LoggedIn, OperatorOrAccount, needs},
    description::ids::{AccountId as AccountIdText, ListId},
    mastodon::{
        accounts::profiles::{entities, is_true},
        bodies::{ListAccounts, ListChange, NewList},
        entities::{Account, List as ListEntity},
        page_query::{AccountPageParams, Limits, PageQuery},
    },
    transport::{Address, ApiError, Params, PathId, Problem},
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
async fn all(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<List<'static>>>, ApiError> {
    if let OperatorOrAccount::Account(account, _) = reader {
        let lists = app.store.read(move |tx| list::all(tx, account.id)).await?;
        return Ok(Json(lists.into_iter().map(entity).collect()));
    }
    let sources = app.store.read(source::list).await?;
    let readable = sources.into_iter().filter(is_the_operators);
    Ok(Json(readable.map(list_of).collect()))
}

/// A list.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = ListEntity), (status = 404, body = Problem)),
)]
async fn one(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<List<'static>>, ApiError> {
    if let OperatorOrAccount::Account(account, _) = reader {
        let find = move |tx: &mut Tx<'_>| list::by_id(tx, account.id, LocalId::new(id));
        let found = app.store.read(find).await?.ok_or(ApiError::NotFound)?;
        return Ok(Json(entity(found)));
    }
    let id = SourceId::new(id);
    let source = app.store.read(move |tx| source::by_id(tx, id)).await?;
    match source.filter(is_the_operators) {
        Some(source) => Ok(Json(list_of(source))),
        None => Err(ApiError::NotFound),
    }
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
}

impl ListParams {
    fn over(self, known: ListSettings) -> Result<ListSettings, ApiError> {
        let policy = self.replies_policy.map(|name| {
            let policy = RepliesPolicy::from_str(&name);
            policy.map_err(|_| {
                ApiError::Unprocessable(format!("'{name}' is not a valid replies_policy"))
            })
        });
        Ok(ListSettings {
            title: self.title.unwrap_or(known.title),
            replies_policy: policy.transpose()?.unwrap_or(known.replies_policy),
            exclusive: match &self.exclusive {
                Some(value) => is_true(Some(value)),
                None => known.exclusive,
            },
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
    State(app): State<Arc<App>>,
    Params(params): Params<ListParams>,
) -> Result<Json<List<'static>>, ApiError> {
    let (account, now_ms) = (caller.account.id, app.people.now_ms());
    let settings = params.over(ListSettings {
        title: String::new(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
    })?;
    let create = move |tx: &mut Tx<'_>| list::create(tx, account, settings.clone(), now_ms);
    let root = local_account::root(account);
    let created = app.store.write(root, create).await?;
    created.map(|list| Json(entity(list))).map_err(refused)
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(params): Params<ListParams>,
) -> Result<Json<List<'static>>, ApiError> {
    let (account, id) = (caller.account.id, LocalId::new(id));
    let find = move |tx: &mut Tx<'_>| list::by_id(tx, account, id);
    let known = app.store.read(find).await?.ok_or(ApiError::NotFound)?;
    let settings = params.over(known.settings)?;
    let set = move |tx: &mut Tx<'_>| {
        let settings = settings.clone();
        list::set(tx, account, list::List { id, settings })
    };
    let set = app.store.write(local_account::root(account), set).await?;
    let set = set.map_err(refused)?.ok_or(ApiError::NotFound)?;
    Ok(Json(entity(set)))
}

fn refused(refused: ListRefused) -> ApiError {
    ApiError::Unprocessable(format!("Validation failed: {refused}"))
}

/// Removes a list.
#[utoipa::path(
    delete, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    security(("account" = ["write:lists"])),
    responses((status = 200, body = Object), (status = 404, body = Problem)),
)]
async fn remove(
    caller: LoggedIn<needs::WriteLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Value>, ApiError> {
    let account = caller.account.id;
    let remove = move |tx: &mut Tx<'_>| list::remove(tx, account, LocalId::new(id));
    let root = local_account::root(account);
    done(app.store.write(root, remove).await?)
}

fn done(is_done: bool) -> Result<Json<Value>, ApiError> {
    match is_done {
        true => Ok(Json(json!({}))),
        false => Err(ApiError::NotFound),
    }
}

/// The accounts of a list; all of them with `limit=0`.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}/accounts", tag = "lists", params(("id" = ListId, Path), AccountPageParams),
    security(("account" = ["read:lists"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem), (status = 404, body = Problem)),
)]
async fn accounts(
    caller: LoggedIn<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (account, list) = (caller.account.id, LocalId::new(id));
    let query = query.unwrap_or_default();
    let mut params = form_urlencoded::parse(query.as_bytes());
    let is_whole = params.any(|(name, value)| name == "limit" && value == "0");
    let query = match is_whole {
        true => PageQuery::parse("", Limits::ACCOUNTS)?,
        false => PageQuery::parse(&query, Limits::ACCOUNTS)?,
    };
    let range = match is_whole {
        true => Range {
            limit: u16::MAX,
            ..Range::default()
        },
        false => query.range,
    };
    let read = move |tx: &mut Tx<'_>| {
        let is_there = list::by_id(tx, account, list)?.is_some();
        let members = list_member::page(tx, account, list, &range)?;
        Ok::<_, StoreError>(is_there.then_some(members))
    };
    let members = app.store.read(read).await?.ok_or(ApiError::NotFound)?;
    let place = |member: &AccountId| LocalId::new(member.raw());
    let ends = members.first().map(place).zip(members.last().map(place));
    let viewer = Viewer::Account(account);
    let shown = entities(&app, viewer, address.clone(), move |_| Ok(members.clone())).await?;
    let path = format!("/api/v1/lists/{id}/accounts");
    Ok(query.answer(&address, &path, &shown, ends.filter(|_| !is_whole)))
}

/// Accounts that are added or removed.
#[derive(Deserialize)]
struct Members {
    account_ids: Option<Value>,
}

impl Members {
    fn ids(&self) -> Result<Vec<AccountId>, ApiError> {
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(members): Params<Members>,
) -> Result<Json<Value>, ApiError> {
    let (account, now_ms, members) = (caller.account.id, app.people.now_ms(), members.ids()?);
    let add =
        move |tx: &mut Tx<'_>| list_member::add(tx, account, LocalId::new(id), &members, now_ms);
    let root = local_account::root(account);
    match app.store.write(root, add).await? {
        Ok(()) => Ok(Json(json!({}))),
        Err(AddRefused::NoList | AddRefused::NotFollowed) => Err(ApiError::NotFound),
        Err(refused) => Err(ApiError::Unprocessable(format!(
            "Validation failed: {refused}"
        ))),
    }
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
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    Params(members): Params<Members>,
) -> Result<Json<Value>, ApiError> {
    let (account, members) = (caller.account.id, members.ids()?);
    let remove =
        move |tx: &mut Tx<'_>| list_member::remove(tx, account, LocalId::new(id), &members);
    let root = local_account::root(account);
    done(app.store.write(root, remove).await?)
}

/// The caller's lists that have an account.
#[utoipa::path(
    get, path = "/api/v1/accounts/{id}/lists", tag = "lists", params(("id" = AccountIdText, Path)),
    security(("account" = ["read:lists"])),
    responses((status = 200, body = [ListEntity])),
)]
async fn with_account(
    caller: LoggedIn<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<Vec<List<'static>>>, ApiError> {
    let account = caller.account.id;
    let read = move |tx: &mut Tx<'_>| {
        let with = list_member::lists_with(tx, account, AccountId::new(id))?;
        let mut lists = list::all(tx, account)?;
        lists.retain(|list| with.contains(&list.id));
        Ok::<_, StoreError>(lists)
    };
    let lists = app.store.read(read).await?;
    Ok(Json(lists.into_iter().map(entity).collect()))
}

fn entity(list: list::List) -> List<'static> {
    List {
        id: list.id.to_string().into(),
        title: list.settings.title.into(),
        replies_policy: list.settings.replies_policy.name().into(),
        exclusive: list.settings.exclusive,
    }
}

fn list_of(source: Source) -> List<'static> {
    List {
        id: source.id.to_string().into(),
        title: source.name.into(),
        replies_policy: "list".into(),
        exclusive: false,
    }
}
