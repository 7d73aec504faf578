use axum::{Json, extract::rejection::JsonRejection};
use driftline_core::sync::{DigestAnswer, DigestRequest};
use driftline_store::sync::{library_digest, store_digests};

use super::{ACCOUNT, names};
use crate::{
    auth::{LoggedIn, needs},
    transport::{ApiError, JsonResult, Problem},
};

/// Returns a digest of the account's library, with which a replica compares its own.
#[utoipa::path(
    post, path = "/api/driftline/v1/sync/digest", tag = "sync", request_body = DigestRequest,
    security(("account" = ["read"])),
    responses((status = 200, body = DigestAnswer), (status = 400, body = Problem), (status = 422, body = Problem, description = "The library has no digest")),
)]
pub(super) async fn digest(
    caller: LoggedIn<needs::Read>,
    body: Result<Json<DigestRequest>, JsonRejection>,
) -> JsonResult<DigestAnswer> {
    let Json(request) = body.map_err(|refused| ApiError::BadParameter(refused.body_text()))?;
    if request.library != ACCOUNT {
        return Err(ApiError::Unprocessable(
            "only the library of the account has a digest".to_owned(),
        ));
    }
    // Each turn stores digests of objects that have none.
    for _ in 0..MAX_TURNS {
        let answer = caller.read(|tx, account| {
            let (server, name) = names(tx, account)?;
            let found = library_digest(tx, account)?;
            Ok(found.map(|(cursor, digest)| DigestAnswer {
                server,
                account: name,
                cursor: cursor.to_string(),
                count: digest.count(),
                digest: digest.text(),
            }))
        });
        if let Some(answer) = answer.await? {
            return Ok(Json(answer));
        }
        caller.write(store_digests).await?;
    }
    Err(ApiError::NotReady(
        "The digest is being computed; ask again",
    ))
}

const MAX_TURNS: usize = 2_000;
