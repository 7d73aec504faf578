use axum::{
    body::Bytes,
    extract::rejection::BytesRejection,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use driftline_core::sync::{
    MAX_PUSH_CHANGES, ObjectKey, ObjectKind, PushAnswer, PushRequest, Usn, push_hash,
};
use driftline_store::{
    LocalAccountId, StoreError, Tx, Viewer,
    social::filter,
    sync::{
        Cursor, CursorError, Resolved, Start,
        device::{self, Replay},
        push as store_changes, start,
    },
};

use super::{bookmark_copy, names, resolved::resolve};
use crate::{
    auth::{LoggedIn, needs},
    mastodon::view::View,
    transport::{Address, ApiError, ApiResult, Problem},
};

/// Stores the changes of a device. The same push again returns the same answer.
#[utoipa::path(
    post, path = "/api/driftline/v1/sync/push", tag = "sync", request_body = PushRequest,
    security(("account" = ["read", "write"])),
    responses(
        (status = 200, body = PushAnswer),
        (status = 400, body = Problem),
        (status = 409, body = Problem, description = "The device was restored or cloned: it needs a new ID"),
        (status = 413, body = Problem),
        (status = 422, body = Problem, description = "Too many changes, or an invalid device or sequence"),
    ),
)]
pub(super) async fn push(
    caller: LoggedIn<needs::Write>,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<Response> {
    // A conflict shows the object's value.
    caller.check::<needs::Read>()?;
    let body = body.map_err(|refused| match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge("A push has at most 1000000 bytes"),
        _ => ApiError::BadParameter(refused.body_text()),
    })?;
    let request: PushRequest =
        serde_json::from_slice(&body).map_err(|error| ApiError::BadParameter(error.to_string()))?;
    check(&request)?;
    let hash = push_hash(&body);
    let (viewer, now_ms) = (caller.viewer, caller.now_ms());
    let (account, address) = (caller.account.id, caller.address.clone());
    let cursor = request.cursor.as_ref().map(|text| text.parse()).transpose();
    // A cursor that this server never gave belongs to another history.
    let cursor: Option<Cursor> = cursor.map_err(|_: CursorError| ApiError::Conflict("device"))?;
    let (known, known_hash) = (request.clone(), hash.clone());
    // Before the write, which others wait for.
    let prepared =
        caller.read(move |tx, account| prepare(tx, account, &known, &known_hash, viewer, &address));
    let resolved = match prepared.await? {
        Prepared::Stored(answer) => return answer_of(&caller, answer).await,
        Prepared::TooLarge => {
            return Err(ApiError::TooLarge(
                "A push changes filters with at most 2000 posts, or one filter",
            ));
        }
        Prepared::New(resolved) => resolved,
    };
    let root = resolved.root(account);
    let answer = caller.app.store.write(root, move |tx: &mut Tx<'_>| {
        resolved.lock(tx, account)?;
        match device::replay(tx, account, &request, &hash)? {
            Replay::Answer(answer) => return Ok(Some(answer)),
            Replay::Refused => return Ok(None),
            Replay::New => {}
        }
        // The device has seen changes that are lost here: it pulls first.
        let is_other_history =
            cursor.is_some() && start(tx, account, cursor.as_ref())? == Start::Diverged;
        if is_other_history {
            return Ok(None);
        }
        let (server, name) = names(tx, account)?;
        let pushed = store_changes(tx, account, &request.changes, &resolved, now_ms)?;
        let answer = PushAnswer {
            server,
            account: name,
            before: pushed.before.to_string(),
            after: pushed.after.to_string(),
            results: pushed.results,
        };
        // Its keys are texts and its numbers finite, so nothing can fail.
        let answer = serde_json::to_string(&answer).unwrap_or_default();
        device::record(tx, account, &request, &hash, &answer, now_ms)?;
        Ok::<_, StoreError>(Some(answer))
    });
    let answer = answer.await?.ok_or(ApiError::Conflict("device"))?;
    answer_of(&caller, answer).await
}

/// A push before its write.
enum Prepared {
    /// It is the device's last push again, with its answer.
    Stored(String),
    /// The filters that it changes have too many posts for one answer.
    TooLarge,
    New(Box<Resolved>),
}

/// Finds what a push names. A push that is stored already takes no locks.
fn prepare(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    request: &PushRequest,
    hash: &str,
    viewer: Viewer,
    address: &Address,
) -> Result<Prepared, StoreError> {
    // A push that seems refused may follow one that is being stored.
    if let Replay::Answer(answer) = device::replay(tx, account, request, hash)? {
        return Ok(Prepared::Stored(answer));
    }
    let keys = request.changes.iter().map(|change| &change.key);
    let filters: Vec<&ObjectKey> = keys
        .filter(|key| key.kind() == Some(ObjectKind::Filter))
        .collect();
    if filters.len() > 1 && filter::count_posts(tx, account, &filters)? > MAX_FILTER_POSTS {
        return Ok(Prepared::TooLarge);
    }
    let resolved = resolve(tx, &request.changes, viewer, address)?;
    Ok(Prepared::New(Box::new(resolved)))
}

/// The answer that the store keeps, with the posts of the bookmarks and favourites in it, of which it keeps nothing.
async fn answer_of(caller: &LoggedIn<needs::Write>, stored: String) -> ApiResult<Response> {
    let answer = serde_json::from_str::<PushAnswer>(&stored).ok();
    let body = match answer.filter(|answer| !bookmark_copy::keys(answer).is_empty()) {
        None => stored,
        Some(answer) => {
            let view = View::without_overlays(caller);
            let read = caller.read(move |tx, account| {
                let mut answer = answer.clone();
                bookmark_copy::add(tx, account, &view, &mut answer)?;
                Ok(answer)
            });
            serde_json::to_string(&read.await?).unwrap_or(stored)
        }
    };
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

fn check(request: &PushRequest) -> Result<(), ApiError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if request.device.len() != 32 || !request.device.bytes().all(is_digit) {
        return Err(ApiError::Unprocessable(
            "device must be 32 hexadecimal digits in lower case".to_owned(),
        ));
    }
    if request.sequence == Usn::NONE {
        return Err(ApiError::Unprocessable(
            "the first sequence is 1".to_owned(),
        ));
    }
    if request.changes.len() > MAX_PUSH_CHANGES {
        return Err(ApiError::TooLarge("A push has at most 100 changes"));
    }
    let mut keys: Vec<&ObjectKey> = request.changes.iter().map(|change| &change.key).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(ApiError::Unprocessable(
            "a push changes each object once".to_owned(),
        ));
    }
    Ok(())
}

/// The largest number of posts in the filters of a push with several, since conflicts show them.
const MAX_FILTER_POSTS: usize = 2_000;
