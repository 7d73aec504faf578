//! How the account that asks stands to others, and what it does to them. What it does to the author of posts
//! that were read stays on this server: nobody there is told.

use std::{collections::HashMap, sync::Arc};

use axum::Json;
use driftline_core::social::{Direction, Relation, RelationMove, RelationRefused};
use driftline_mastodon::iso_8601;
use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx,
    social::{
        account_note::{self, AccountNote, AccountNoteRefused},
        copy_relations::RelationContext,
        mute::{self, Mute},
        relation::{self, ChangeRefused, FollowOptions, RelationRow},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    account_entities::{AccountEntities, entity},
    ids_query::{IdsParams, IdsQuery},
    linked_accounts::AccountIds,
    related_accounts::relation_page,
};
use crate::{
    App,
    auth::{LoggedIn, needs},
    description::ids::AccountId as AccountIdText,
    mastodon::{
        entities::{Account, FamiliarFollowers, MutedAccount, Relationship},
        page_query::{AccountPageParams, AccountPageQuery, ends},
        values::{boolean, number},
    },
    transport::{ApiError, ApiResult, JsonResult, Params, PathId, Problem},
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
        .routes(routes!(note))
        .routes(routes!(blocks))
        .routes(routes!(mutes))
        .routes(routes!(follow_requests))
        .routes(routes!(authorize))
        .routes(routes!(reject))
}

/// How the account stands to others.
///
/// The answer has the order of the IDs and the same IDs. An account that is not there is related to nobody.
#[utoipa::path(
    get, path = "/api/v1/accounts/relationships", tag = "accounts", params(IdsParams),
    security(("account" = ["read:follows"])),
    responses((status = 200, body = [Relationship])),
)]
async fn relationships(
    caller: LoggedIn<needs::ReadFollows>,
    IdsQuery(ids): IdsQuery,
) -> JsonResult<Vec<Value>> {
    let (viewer, now_ms, address) = (caller.viewer, caller.now_ms(), caller.address.clone());
    let read = caller.read(move |tx, account| {
        let others = AccountIds::load(tx, &ids, viewer, &address)?;
        all_relationships(tx, account, &others, now_ms)
    });
    read.await.map(Json)
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

fn own_relationship(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    other: AccountIds,
    now_ms: i64,
) -> Result<Value, StoreError> {
    let mut all = all_relationships(tx, account, &[other], now_ms)?;
    Ok(all.pop().unwrap_or_default())
}

fn all_relationships(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    others: &[AccountIds],
    now_ms: i64,
) -> Result<Vec<Value>, StoreError> {
    let ids: Vec<AccountId> = others.iter().flat_map(|ids| ids.all()).collect();
    let rows = relation::to(tx, account, &ids)?.into_iter();
    let rows: HashMap<AccountId, RelationRow> = rows.map(|row| (row.other, row)).collect();
    let mutes = mute::of(tx, account, &ids, now_ms)?.into_iter();
    let mutes: HashMap<AccountId, Mute> = mutes.map(|mute| (mute.other, mute)).collect();
    let notes = account_note::to(tx, account, &ids)?.into_iter();
    let notes: HashMap<AccountId, AccountNote> = notes.map(|note| (note.other, note)).collect();
    let related = others.iter().map(|ids| {
        let rows: Vec<&RelationRow> = ids.all().filter_map(|id| rows.get(&id)).collect();
        let mute = ids.all().find_map(|id| mutes.get(&id));
        let note = ids.all().find_map(|id| notes.get(&id));
        let note = note.map_or("", |note| note.text.as_str());
        relationship(ids.requested_id, &rows, mute, note)
    });
    Ok(related.collect())
}

/// The entity `Relationship`, from the rows of the account and of its copies. It does not reveal
/// whether the other one blocks.
fn relationship(id: AccountId, rows: &[&RelationRow], mute: Option<&Mute>, note: &str) -> Value {
    let mut acting = rows.iter();
    let row = acting.find(|row| row.pair.outgoing != Relation::None);
    let out = |relation| row.is_some_and(|row| row.pair.outgoing == relation);
    let back = |relation| rows.iter().any(|row| row.pair.incoming == relation);
    let follows = out(Relation::Following);
    json!({
        "id": id.to_string(),
        "following": follows,
        "showing_reblogs": follows && row.is_some_and(|row| row.show_boosts),
        "notifying": follows && row.is_some_and(|row| row.notified.is_some()),
        "languages": Value::Null,
        "followed_by": back(Relation::Following),
        "blocking": out(Relation::Blocking),
        "blocked_by": false,
        "muting": mute.is_some(),
        "muting_notifications": mute.is_some_and(|mute| mute.notifications),
        "muting_expires_at": mute.and_then(|mute| mute.until_ms).map(iso_8601),
        "requested": out(Relation::RequestingFollow),
        "requested_by": back(Relation::RequestingFollow),
        "domain_blocking": false,
        "endorsed": false,
        "note": note,
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
    PathId(id): PathId,
    Params(follow): Params<Follow>,
) -> JsonResult<Value> {
    let options = FollowOptions {
        show_boosts: boolean(follow.reblogs.as_ref()),
        notify: boolean(follow.notify.as_ref()),
    };
    act(&caller, id, move |tx, context| context.follow(tx, options)).await
}

/// Ends a follow.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unfollow", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unfollow(caller: LoggedIn<needs::WriteFollows>, PathId(id): PathId) -> JsonResult<Value> {
    change(&caller, id, RelationMove::Unfollow).await
}

/// Ends the follow of a follower.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/remove_from_followers", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn remove_from_followers(
    caller: LoggedIn<needs::WriteFollows>,
    PathId(id): PathId,
) -> JsonResult<Value> {
    change(&caller, id, RelationMove::RemoveFollower).await
}

/// Blocks an account.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/block", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:blocks"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn block(caller: LoggedIn<needs::WriteBlocks>, PathId(id): PathId) -> JsonResult<Value> {
    change(&caller, id, RelationMove::Block).await
}

/// Ends a block.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unblock", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:blocks"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unblock(caller: LoggedIn<needs::WriteBlocks>, PathId(id): PathId) -> JsonResult<Value> {
    change(&caller, id, RelationMove::Unblock).await
}

/// Accepts a request to follow.
#[utoipa::path(
    post, path = "/api/v1/follow_requests/{id}/authorize", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn authorize(caller: LoggedIn<needs::WriteFollows>, PathId(id): PathId) -> JsonResult<Value> {
    change(&caller, id, RelationMove::AcceptFollow).await
}

/// Rejects a request to follow.
#[utoipa::path(
    post, path = "/api/v1/follow_requests/{id}/reject", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:follows"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn reject(caller: LoggedIn<needs::WriteFollows>, PathId(id): PathId) -> JsonResult<Value> {
    change(&caller, id, RelationMove::RejectFollow).await
}

async fn change<S>(caller: &LoggedIn<S>, id: u64, change: RelationMove) -> JsonResult<Value> {
    act(caller, id, move |tx, context| context.change(tx, change)).await
}

/// Changes how the account stands to another one that it knows, and answers how the two stand after it.
async fn act<S, T, R: Send + 'static>(
    caller: &LoggedIn<S>,
    id: u64,
    act: impl Fn(&mut Tx<'_>, RelationContext) -> Result<Result<T, R>, StoreError> + Send + 'static,
) -> JsonResult<Value>
where
    ApiError: From<R>,
{
    let requested_id = AccountId::new(id);
    entity(caller, requested_id).await?;
    let other = AccountIds::find(caller, requested_id).await?;
    let (account, now_ms) = (caller.account.id, caller.now_ms());
    let root = relation::root(account, other.canonical_id);
    let context = RelationContext {
        account,
        other: other.related(),
        now_ms,
    };
    let write = move |tx: &mut Tx<'_>| match act(tx, context)? {
        Ok(_) => own_relationship(tx, account, other, now_ms).map(Ok),
        Err(refused) => Ok(Err(refused)),
    };
    match caller.app.store.write(root, write).await {
        Ok(done) => Ok(Json(done?)),
        // It was deleted meanwhile.
        Err(StoreError::NoAccount) => Err(ApiError::NotFound),
        Err(error) => Err(error.into()),
    }
}

impl From<ChangeRefused> for ApiError {
    fn from(refused: ChangeRefused) -> Self {
        match refused {
            ChangeRefused::Oneself => Self::Forbidden("This is your own account"),
            ChangeRefused::Relation(RelationRefused::NotRequested) => Self::NotFound,
            ChangeRefused::Relation(_) => Self::Forbidden("This action is not allowed"),
        }
    }
}

impl From<AccountNoteRefused> for ApiError {
    fn from(refused: AccountNoteRefused) -> Self {
        Self::invalid(refused)
    }
}

/// Removes what the account has about another one, and about its copy. The other one may be gone.
async fn remove<S>(
    caller: &LoggedIn<S>,
    id: u64,
    remove: fn(&mut Tx<'_>, LocalAccountId, AccountId) -> Result<bool, StoreError>,
) -> JsonResult<Value> {
    let (requested_id, now_ms) = (AccountId::new(id), caller.now_ms());
    let other = AccountIds::find(caller, requested_id).await?;
    let write = caller.write(move |tx, account| {
        let mut is_removed = false;
        for id in other.all() {
            is_removed |= remove(tx, account, id)?;
        }
        let relationship = own_relationship(tx, account, other, now_ms)?;
        Ok((is_removed, relationship))
    });
    let (is_removed, relationship) = write.await?;
    if !is_removed {
        entity(caller, requested_id).await?;
    }
    Ok(Json(relationship))
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
    PathId(id): PathId,
    Params(new): Params<NewMute>,
) -> JsonResult<Value> {
    let notifications = boolean(new.notifications.as_ref()).unwrap_or(true);
    let duration_s = number(new.duration.as_ref(), 0, MAX_MUTE_S)?;
    let duration_ms = i64::try_from(duration_s).unwrap_or_default() * 1000;
    act(&caller, id, move |tx, context| {
        let until_ms = (duration_ms > 0).then_some(context.now_ms + duration_ms);
        context.mute(tx, notifications, until_ms)
    })
    .await
}

/// Ends a mute.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/unmute", tag = "accounts", params(("id" = AccountIdText, Path)),
    security(("account" = ["write:mutes"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem)),
)]
async fn unmute(caller: LoggedIn<needs::WriteMutes>, PathId(id): PathId) -> JsonResult<Value> {
    remove(&caller, id, mute::remove).await
}

/// The note of an account on another one.
#[derive(Deserialize, ToSchema)]
struct NewNote {
    /// At most 2,000 characters. Without any, the note is removed.
    comment: Option<String>,
}

/// Sets the note on an account, which only its author is shown.
#[utoipa::path(
    post, path = "/api/v1/accounts/{id}/note", tag = "accounts", params(("id" = AccountIdText, Path)),
    request_body(content((NewNote), (NewNote = "application/x-www-form-urlencoded"), (NewNote = "multipart/form-data"))),
    security(("account" = ["write:accounts"])),
    responses((status = 200, body = Relationship), (status = 404, body = Problem), (status = 422, body = Problem, description = "A value is refused, or the token belongs to no account")),
)]
async fn note(
    caller: LoggedIn<needs::WriteAccounts>,
    PathId(id): PathId,
    Params(new): Params<NewNote>,
) -> JsonResult<Value> {
    let text = new.comment.unwrap_or_default();
    // As in Mastodon, spaces alone are no note.
    if text.trim().is_empty() {
        return remove(&caller, id, account_note::remove).await;
    }
    act(&caller, id, move |tx, context| context.note(tx, &text)).await
}

/// Whom the account blocks.
#[utoipa::path(
    get, path = "/api/v1/blocks", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:blocks"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn blocks(caller: LoggedIn<needs::ReadBlocks>, query: AccountPageQuery) -> ApiResult {
    let (account, direction) = (caller.account.id, Direction::Outgoing);
    relation_page(&caller, account, direction, Relation::Blocking, query).await
}

/// Who asks to follow the account.
#[utoipa::path(
    get, path = "/api/v1/follow_requests", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:follows"])),
    responses((status = 200, body = [Account], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn follow_requests(
    caller: LoggedIn<needs::ReadFollows>,
    query: AccountPageQuery,
) -> ApiResult {
    let (account, direction) = (caller.account.id, Direction::Incoming);
    relation_page(
        &caller,
        account,
        direction,
        Relation::RequestingFollow,
        query,
    )
    .await
}

/// Whom the account mutes.
#[utoipa::path(
    get, path = "/api/v1/mutes", tag = "accounts", params(AccountPageParams),
    security(("account" = ["read:mutes"])),
    responses((status = 200, body = [MutedAccount], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
async fn mutes(
    caller: LoggedIn<needs::ReadMutes>,
    AccountPageQuery(query): AccountPageQuery,
) -> ApiResult {
    let (viewer, now_ms) = (caller.viewer, caller.now_ms());
    let (range, address) = (query.range, caller.address.clone());
    let read = caller.read(move |tx, account| {
        let mutes = mute::page(tx, account, &range, now_ms)?;
        let ids: Vec<AccountId> = mutes.iter().map(|mute| mute.other).collect();
        let entities = AccountEntities::load(tx, &ids, viewer, &address)?;
        let muted = mutes.iter().filter_map(|mute| {
            let entity = entities.get(mute.other)?;
            let mut entity: Value = serde_json::from_str(entity.get()).ok()?;
            entity["mute_expires_at"] = json!(mute.until_ms.map(iso_8601));
            Some(entity)
        });
        Ok((muted.collect::<Vec<Value>>(), ends(&mutes, |mute| mute.id)))
    });
    let (muted, ends) = read.await?;
    Ok(query.answer(&muted, ends))
}

/// A hundred years.
const MAX_MUTE_S: usize = 100 * 366 * 24 * 60 * 60;
