//! How the account that asks stands to others, and what it does to them. What it does to the author of posts
//! that were read stays on this server: nobody there is told.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use axum::{Json, extract::State, response::Response};
use driftline_core::social::{Direction, Relation, RelationMove};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx,
    social::{
        local_account,
        mute::{self, Mute},
        relation::{self, ChangeRefused, FollowOptions, RelationRow},
    },
    timeline::Viewer,
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::AccountEntities,
    profiles::{Entities, entities, is_true, number},
    related_accounts::{RelatedQuery, relation_page},
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::AccountId as AccountIdText,
    mastodon::{
        answer,
        entities::{Account, FamiliarFollowers, MutedAccount, Relationship},
        page_query::AccountPageParams,
    },
    transport::{Address, ApiError, Params, PathId, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(relationships))
        .routes(routes!(familiar_followers))
        .routes(routes!(follow))
        .routes(routes!(unfollow))
        .routes(routes!(remove_from_followers))
        .routes(routes!(block))
        .routes(routes!(unblock))
        .routes(routes!(mute))
        .routes(routes!(unmute))
        .routes(routes!(blocks))
        .routes(routes!(mutes))
        .routes(routes!(domain_blocks))
        .routes(routes!(follow_requests))
        .routes(routes!(authorize))
        .routes(routes!(reject))
}

/// How the account stands to others.
///
/// In the order of the IDs; accounts that are not there are related to nobody.
#[utoipa::path(
    get, path = "/api/v1/accounts/relationships", tag = "accounts", params(IdsParams),
    security(("account" = ["read:follows"])),
    responses((status = 200, body = [Relationship])),
)]
async fn relationships(
    caller: LoggedIn<needs::ReadFollows>,
    State(app): State<Arc<App>>,
    IdsQuery(ids): IdsQuery,
) -> Result<Json<Vec<Value>>, ApiError> {
    let (account, now_ms) = (caller.account.id, app.people.now_ms());
    let read = move |tx: &mut Tx<'_>| all_relationships(tx, account, &ids, now_ms);
    Ok(Json(app.store.read(read).await?))
}

/// Who that the account follows also follows others: none.
///
/// Who follows an author stays with the follower.
#[utoipa::path(
    get, path = "/api/v1/accounts/familiar_followers", tag = "accounts", params(IdsParams),
    security(("account" = ["read:follows"])),
    responses((status = 200, body = [FamiliarFollowers])),
)]
async fn familiar_followers(
    _: LoggedIn<needs::ReadFollows>,
    IdsQuery(ids): IdsQuery,
) -> Json<Vec<Value>> {
    let of = |id: &AccountId| json!({ "id": id.to_string(), "accounts": [] });
    Json(ids.iter().map(of).collect())
}

/// Which accounts.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct IdsParams {
    /// At most 200; also as `id`.
    #[param(rename = "id[]", value_type = Vec<AccountIdText>)]
    id: Vec<String>,
}

/// The IDs that a query names by `id[]` or `id`, each once.
pub(crate) struct IdsQuery(pub(crate) Vec<AccountId>);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for IdsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &S,
    ) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut seen = HashSet::new();
        let mut ids = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_id = matches!(&*name, "id" | "id[]") || name.starts_with("id[");
            if is_id
                && let Ok(id) = value.parse()
                && seen.insert(id)
            {
                ids.push(id);
            }
        }
        match ids.len() <= MAX_IDS {
            true => Ok(Self(ids)),
            false => Err(ApiError::BadParameter(format!(
                "at most {MAX_IDS} IDs can be asked for at once"
            ))),
        }
    }
}

fn all_relationships(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[AccountId],
    now_ms: i64,
) -> Result<Vec<Value>, StoreError> {
    let rows = relation::to(tx, account, ids)?.into_iter();
    let rows: HashMap<AccountId, RelationRow> = rows.map(|row| (row.other, row)).collect();
    let mutes = mute::of(tx, account, ids, now_ms)?.into_iter();
    let mutes: HashMap<AccountId, Mute> = mutes.map(|mute| (mute.other, mute)).collect();
    let of = |id: &AccountId| relationship(*id, rows.get(id), mutes.get(id));
    Ok(ids.iter().map(of).collect())
}

/// The entity `Relationship`. It does not tell whether the other one blocks.
fn relationship(id: AccountId, row: Option<&RelationRow>, mute: Option<&Mute>) -> Value {
    let stands = |direction, relation| {
        row.is_some_and(|row| match direction {
            Direction::Outgoing => row.pair.outgoing == relation,
            Direction::Incoming => row.pair.incoming == relation,
        })
    };
    let (out, back) = (Direction::Outgoing, Direction::Incoming);
    let follows = stands(out, Relation::Following);
    json!({
        "id": id.to_string(),
        "following": follows,
        "showing_reblogs": follows && row.is_some_and(|row| row.show_boosts),
        "notifying": follows && row.is_some_and(|row| row.notified.is_some()),
        "languages": Value::Null,
        "followed_by": stands(back, Relation::Following),
        "blocking": stands(out, Relation::Blocking),
        "blocked_by": false,
        "muting": mute.is_some(),
        "muting_notifications": mute.is_some_and(|mute| mute.notifications),
        "muting_expires_at": mute.and_then(|mute| mute.until_ms).map(iso_8601),
        "requested": stands(out, Relation::RequestingFollow),
        "requested_by": stands(back, Relation::RequestingFollow),
        "domain_blocking": false,
        "endorsed": false,
        "note": "",
    })
}

/// What a follower wants to see.
#[derive(Deserialize, ToSchema)]
struct Follow {
    #[schema(value_type = Option<bool>)]
    reblogs: Option<Value>,
    #[schema(value_type = Option<bool>)]
    notify: Option<Value>,
}

/// Follows an account: locally, where it is the author of posts that were read.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/follow", tag = "accounts", params(("id" = AccountIdText, Path)),
    request_body(content((Follow), (Follow = "application/x-www-form-urlencoded"), (Follow = "multipart/form-data"))),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn follow(
    caller: LoggedIn<needs::WriteFollows>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    Params(follow): Params<Follow>,
) -> Result<Json<Value>, ApiError> {
    let options = FollowOptions {
        show_boosts: follow.reblogs.as_ref().map(|value| is_true(Some(value))),
        notify: follow.notify.as_ref().map(|value| is_true(Some(value))),
    };
    let (account, other) = (caller.account.id, AccountId::new(id));
    act(&app, account, other, address, move |tx, now_ms| {
        relation::follow(tx, account, other, options, now_ms)
    })
    .await
}

/// Ends a follow.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unfollow", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unfollow(
    caller: LoggedIn<needs::WriteFollows>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(&app, caller.account.id, id, address, RelationMove::Unfollow).await
}

/// Ends the follow of a follower.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/remove_from_followers", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn remove_from_followers(
    caller: LoggedIn<needs::WriteFollows>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(
        &app,
        caller.account.id,
        id,
        address,
        RelationMove::RemoveFollower,
    )
    .await
}

/// Blocks an account.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/block", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:blocks"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn block(
    caller: LoggedIn<needs::WriteBlocks>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(&app, caller.account.id, id, address, RelationMove::Block).await
}

/// Ends a block.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unblock", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:blocks"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unblock(
    caller: LoggedIn<needs::WriteBlocks>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(&app, caller.account.id, id, address, RelationMove::Unblock).await
}

/// Accepts a request to follow.
#[utoipa::path(
    post, path = "/api/v1/follow_requests/{id}/authorize", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn authorize(
    caller: LoggedIn<needs::WriteFollows>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(
        &app,
        caller.account.id,
        id,
        address,
        RelationMove::AcceptFollow,
    )
    .await
}

/// Rejects a request to follow.
#[utoipa::path(
    post, path = "/api/v1/follow_requests/{id}/reject", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn reject(
    caller: LoggedIn<needs::WriteFollows>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    change(
        &app,
        caller.account.id,
        id,
        address,
        RelationMove::RejectFollow,
    )
    .await
}

async fn change(
    app: &App,
    account: LocalAccountId,
    id: u64,
    address: Address,
    done: RelationMove,
) -> Result<Json<Value>, ApiError> {
    let other = AccountId::new(id);
    act(app, account, other, address, move |tx, now_ms| {
        relation::change(tx, account, other, done, now_ms)
    })
    .await
}

/// What comes of something that an account does to another one.
type Done = Result<Result<RelationRow, ChangeRefused>, StoreError>;

/// Does something to an account that is known, and answers how the two stand after it.
async fn act(
    app: &App,
    account: LocalAccountId,
    other: AccountId,
    address: Address,
    done: impl Fn(&mut Tx<'_>, i64) -> Done + Clone + Send + 'static,
) -> Result<Json<Value>, ApiError> {
    known(app, account, other, address).await?;
    let now_ms = app.people.now_ms();
    let write = move |tx: &mut Tx<'_>| match done(tx, now_ms)? {
        Ok(_) => all_relationships(tx, account, &[other], now_ms).map(Ok),
        Err(refused) => Ok(Err(refused)),
    };
    let written = app.store.write(relation::root(account, other), write).await;
    answered(written)
}

fn answered(
    written: Result<Result<Vec<Value>, ChangeRefused>, StoreError>,
) -> Result<Json<Value>, ApiError> {
    match written {
        Ok(Ok(mut relationships)) => Ok(Json(relationships.pop().unwrap_or_default())),
        Ok(Err(ChangeRefused::Oneself)) => Err(ApiError::Forbidden("This is your own account")),
        Ok(Err(ChangeRefused::Relation(refused))) => match refused {
            driftline_core::social::RelationRefused::NotRequested => Err(ApiError::NotFound),
            _ => Err(ApiError::Forbidden("This action is not allowed")),
        },
        // It was deleted meanwhile.
        Err(StoreError::NoAccount) => Err(ApiError::NotFound),
        Err(error) => Err(error.into()),
    }
}

/// That the account knows of another one.
async fn known(
    app: &App,
    account: LocalAccountId,
    other: AccountId,
    address: Address,
) -> Result<(), ApiError> {
    let viewer = Viewer::Account(account);
    let found = entities(app, viewer, address, move |_| Ok(vec![other])).await?;
    match found.is_empty() {
        true => Err(ApiError::NotFound),
        false => Ok(()),
    }
}

/// How somebody is muted.
#[derive(Deserialize, ToSchema)]
struct NewMute {
    #[schema(value_type = Option<bool>)]
    notifications: Option<Value>,
    /// Seconds; 0 without end.
    #[schema(value_type = Option<u32>)]
    duration: Option<Value>,
}

/// Mutes an account, for `duration` seconds or until it is ended.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/mute", tag = "accounts", params(("id" = AccountIdText, Path)),
    request_body(content((NewMute), (NewMute = "application/x-www-form-urlencoded"), (NewMute = "multipart/form-data"))),
    security(("account" = ["write:mutes"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn mute(
    caller: LoggedIn<needs::WriteMutes>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    Params(new): Params<NewMute>,
) -> Result<Json<Value>, ApiError> {
    let (account, other) = (caller.account.id, AccountId::new(id));
    known(&app, account, other, address).await?;
    let notifications = new
        .notifications
        .as_ref()
        .is_none_or(|value| is_true(Some(value)));
    let duration_s = number(new.duration.as_ref(), 0, MAX_MUTE_S)?;
    let now_ms = app.people.now_ms();
    let until_ms = i64::try_from(duration_s).unwrap_or_default() * 1000;
    let until_ms = Some(now_ms + until_ms).filter(|until_ms| *until_ms > now_ms);
    let write = move |tx: &mut Tx<'_>| match mute::set(
        tx,
        account,
        other,
        notifications,
        until_ms,
        now_ms,
    )? {
        true => all_relationships(tx, account, &[other], now_ms).map(Ok),
        false => Ok(Err(ChangeRefused::Oneself)),
    };
    answered(app.store.write(local_account::root(account), write).await)
}

/// Ends a mute.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unmute", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:mutes"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unmute(
    caller: LoggedIn<needs::WriteMutes>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
) -> Result<Json<Value>, ApiError> {
    let (account, other) = (caller.account.id, AccountId::new(id));
    let now_ms = app.people.now_ms();
    let write = move |tx: &mut Tx<'_>| {
        let was_muted = mute::remove(tx, account, other)?;
        let relationships = all_relationships(tx, account, &[other], now_ms)?;
        Ok::<_, StoreError>((was_muted, relationships))
    };
    let written = app.store.write(local_account::root(account), write).await;
    let (was_muted, mut relationships) = written?;
    if !was_muted {
        known(&app, account, other, address).await?;
    }
    Ok(Json(relationships.pop().unwrap_or_default()))
}

/// Whom the account blocks.
#[utoipa::path(
    get, path = "/api/v1/blocks", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:blocks"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn blocks(
    caller: LoggedIn<needs::ReadBlocks>,
    State(app): State<Arc<App>>,
    address: Address,
    query: RelatedQuery,
) -> Result<Response, ApiError> {
    let account = caller.account.id;
    let of = (Direction::Outgoing, Relation::Blocking);
    let page = ("/api/v1/blocks", query);
    relation_page(&app, Viewer::Account(account), account, of, address, page).await
}

/// Who asks to follow the account.
#[utoipa::path(
    get, path = "/api/v1/follow_requests", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:follows"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn follow_requests(
    caller: LoggedIn<needs::ReadFollows>,
    State(app): State<Arc<App>>,
    address: Address,
    query: RelatedQuery,
) -> Result<Response, ApiError> {
    let account = caller.account.id;
    let of = (Direction::Incoming, Relation::RequestingFollow);
    let page = ("/api/v1/follow_requests", query);
    relation_page(&app, Viewer::Account(account), account, of, address, page).await
}

/// Whom the account mutes.
#[utoipa::path(
    get, path = "/api/v1/mutes", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:mutes"])),
    responses((status = 200, body = [MutedAccount], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn mutes(
    caller: LoggedIn<needs::ReadMutes>,
    State(app): State<Arc<App>>,
    address: Address,
    query: RelatedQuery,
) -> Result<Response, ApiError> {
    let (account, now_ms) = (caller.account.id, app.people.now_ms());
    let (range, of) = (query.page.range, address.clone());
    let read = answer::read(&app, move |tx| {
        let mutes = mute::page(tx, account, &range, now_ms)?;
        let ids: Vec<AccountId> = mutes.iter().map(|mute| mute.other).collect();
        let entities = AccountEntities::load(tx, &ids, Viewer::Account(account), &of)?;
        let muted = mutes.iter().filter_map(|mute| {
            let entity = entities.of(mute.other)?;
            let mut entity: Value = serde_json::from_str(entity.get()).ok()?;
            entity["mute_expires_at"] = json!(mute.until_ms.map(iso_8601));
            Some(entity)
        });
        let ends = mutes.first().zip(mutes.last());
        let ends = ends.map(|(newest, oldest)| (newest.id, oldest.id));
        Ok((muted.collect::<Vec<Value>>(), ends))
    });
    let (muted, ends) = read.await?;
    Ok(query.page.answer(&address, "/api/v1/mutes", &muted, ends))
}

/// The hosts that the account blocks: none.
#[utoipa::path(
    get, path = "/api/v1/domain_blocks", tag = "accounts",
    security(("account" = ["read:blocks"])),
    responses((status = 200, body = [String])),
)]
async fn domain_blocks(_: LoggedIn<needs::ReadBlocks>) -> Json<Entities> {
    Json(Entities::new())
}

const MAX_IDS: usize = 200;
/// A hundred years.
const MAX_MUTE_S: usize = 100 * 366 * 24 * 60 * 60;
