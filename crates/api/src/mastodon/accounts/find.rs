//! Accounts by their names and addresses.

use std::sync::Arc;

use axum::Json;
use driftline_core::{
    names::acct::{AcctKey, acct_at},
    social::{AccountName, Relation},
};
use driftline_store::{
    AccountId, StoreError, Tx, account, account_id, local_account_id,
    social::{copy_relations::RelatedAccount, local_account, relation},
    timeline::Viewer,
    viewer::ReadableSources,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::{Entities, entities, entity, known_accounts},
    linked_accounts::AccountIds,
};
use crate::{
    App,
    auth::{LoggedIn, MayRead, RequestContext, needs},
    mastodon::{
        entities::Account,
        values::{is_true, number},
    },
    transport::{Address, ApiError, ApiResult, JsonResult, Params, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(look_up))
        .routes(routes!(search))
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
    reader: MayRead<needs::ReadAccounts>,
    Params(LookUp { acct }): Params<LookUp>,
) -> JsonResult<Box<RawValue>> {
    let domain = reader.address.domain().to_owned();
    let id = reader.read(move |tx| named(tx, &acct, &domain)).await?;
    let id = id.ok_or(ApiError::NotFound)?;
    entity(&reader, id).await.map(Json)
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
        let key = AcctKey::new(acct, "");
        return Ok(key.map(|key| AccountId::new(key.account_id())));
    };
    let Ok(name) = AccountName::new(name) else {
        return Ok(None);
    };
    let found = local_account::by_name(tx, &name)?;
    Ok(found.map(|account| account_id(account.id)))
}

/// An account that the viewer may know of, as programs of people find it.
pub(crate) fn related(
    tx: &mut Tx<'_>,
    id: AccountId,
    viewer: Viewer,
    address: &Address,
) -> Result<Option<RelatedAccount>, StoreError> {
    let is_known = match local_account_id(id) {
        Some(local) => local_account::by_id(tx, local)?.is_some(),
        None => known_accounts(tx, &[id], viewer)?.contains(&id),
    };
    if !is_known {
        return Ok(None);
    }
    let found = AccountIds::load(tx, &[id], viewer, address)?.pop();
    Ok(found.map(AccountIds::related))
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
    Params(search): Params<Search>,
) -> JsonResult<Entities> {
    let limit = number(search.limit.as_ref(), 40, 80)?;
    let offset = number(search.offset.as_ref(), 0, 10_000)?;
    let only_followed = is_true(search.following.as_ref());
    let is_asked = is_true(search.resolve.as_ref()) && offset == 0;
    if acct_at(&search.q).is_some() && !only_followed && offset == 0 {
        return at(&caller, &search.q, is_asked).await.map(Json);
    }
    if is_asked {
        resolve(&caller, &search.q).await?;
    }
    let found = found(&caller, search.q, only_followed).await?;
    Ok(Json(found.into_iter().skip(offset).take(limit).collect()))
}

/// Fetches the account of a name with a host of which a viewer with an account does not know. What came of it is in the
/// store, or is not known now.
pub(crate) async fn resolve(context: &RequestContext, text: &str) -> ApiResult<()> {
    let name = text.trim().trim_start_matches('@');
    let Some((_, host)) = name.split_once('@') else {
        return Ok(());
    };
    let viewer = context.viewer;
    if viewer == Viewer::Anonymous || host.eq_ignore_ascii_case(context.address.domain()) {
        return Ok(());
    }
    let Some(key) = AcctKey::new(name, "") else {
        return Ok(());
    };
    let id = AccountId::new(key.account_id());
    // By what the viewer sees alone: whether others know of the account changes nothing.
    let known = entities(context, move |_| Ok(vec![id])).await?;
    if known.is_empty() {
        let _ = context
            .app
            .mirror
            .fetch_account(viewer, name.to_owned())
            .await;
    }
    Ok(())
}

/// The account whose profile has an address, if it is one that the account's server gives it. Where the viewer does
/// not know of it, it is asked of a server if `is_asked`.
pub(crate) async fn at(
    context: &RequestContext,
    text: &str,
    is_asked: bool,
) -> ApiResult<Entities> {
    let Some(acct) = acct_at(text) else {
        return Ok(Entities::new());
    };
    if is_asked {
        resolve(context, &acct).await?;
    }
    let domain = context.address.domain().to_owned();
    let found = entities(context, move |tx| {
        Ok(named(tx, &acct, &domain)?.into_iter().collect())
    });
    let mut found = found.await?;
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
    context: &RequestContext,
    text: String,
    only_followed: bool,
) -> ApiResult<Entities> {
    let (viewer, domain) = (context.viewer, context.address.domain().to_owned());
    let found = entities(context, move |tx| {
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
    });
    found.await
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
        // Accounts of this server are found above, by their own names.
        let is_own = |key: &str| key.rsplit_once('@').is_some_and(|(_, host)| host == domain);
        let page = page.into_iter().filter(|(key, _)| !is_own(key));
        let page: Vec<AccountId> = page.map(|(_, id)| id).collect();
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

/// More are not looked through.
const MAX_FOUND: u32 = 400;
