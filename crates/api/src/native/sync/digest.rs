use std::time::{Duration, Instant};

use axum::{Json, extract::rejection::JsonRejection};
use driftline_core::sync::{DigestAnswer, LibraryRequest};
use driftline_store::{
    change_feed, nonce,
    sync::{DigestReading, library_digest, store_digests},
    viewer::LazyReadableSources,
};

use super::{
    ACCOUNT,
    cursor_seal::CursorSeal,
    library_filter::LibraryFilter,
    names,
    source_library::{self, SourceReader},
};
use crate::{
    auth::{LoggedIn, needs},
    mastodon::view::View,
    transport::{ApiError, JsonResult, Problem},
};

/// Returns the digest of a library, with which a replica compares its own. The digest of a source covers a part of the library.
#[utoipa::path(
    post, path = "/api/driftline/v1/sync/digest", tag = "sync", request_body = LibraryRequest,
    security(("account" = ["read"])),
    responses(
        (status = 200, body = DigestAnswer),
        (status = 400, body = Problem),
        (status = 404, body = Problem, description = "The account may not read the library"),
        (status = 422, body = Problem, description = "The filter has a term that it must not have, or the cursor is not from a digest of this library and filter"),
        (status = 503, body = Problem, description = "Digests of the account's objects are still missing, or too many long requests of the account wait already"),
    ),
)]
pub(super) async fn digest(
    caller: LoggedIn<needs::Read>,
    body: Result<Json<LibraryRequest>, JsonRejection>,
) -> JsonResult<DigestAnswer> {
    let Json(request) = body.map_err(|refused| ApiError::BadParameter(refused.body_text()))?;
    let filter = LibraryFilter::of_library(&request.library, request.filter.as_ref())?;
    match request.library == ACCOUNT {
        true => of_account(&caller).await,
        false => of_source(&caller, request, filter).await,
    }
}

async fn of_account(caller: &LoggedIn<needs::Read>) -> JsonResult<DigestAnswer> {
    // Each turn stores digests of objects that have none.
    for _ in 0..MAX_TURNS {
        let read =
            caller.long_read(|tx, account| Ok((names(tx, account)?, library_digest(tx, account)?)));
        let ((server, account), reading) = read.await?;
        let missing = match reading {
            DigestReading::Whole(cursor, digest) => {
                return Ok(Json(DigestAnswer {
                    server,
                    account,
                    cursor: cursor.to_string(),
                    count: digest.count(),
                    digest: digest.text(),
                    more: false,
                }));
            }
            DigestReading::Missing(missing) => missing,
        };
        let stored = caller.write(move |tx, account| store_digests(tx, account, &missing));
        if stored.await? == 0 {
            break;
        }
    }
    Err(ApiError::NotReady(
        "The digest is being computed; ask again",
    ))
}

async fn of_source(
    caller: &LoggedIn<needs::Read>,
    request: LibraryRequest,
    filter: Option<LibraryFilter>,
) -> JsonResult<DigestAnswer> {
    let view = View::without_overlays(caller);
    let LibraryRequest {
        library, cursor, ..
    } = request;
    let read = caller.long_read(move |tx, account| {
        let names = names(tx, account)?;
        let seal = CursorSeal::new(&nonce(tx)?);
        let sources = change_feed::sources(tx)?;
        let Some(source) = source_library::find(&sources, &library, view.viewer) else {
            return Ok(None);
        };
        let readable = LazyReadableSources::new(view.viewer);
        let reader = SourceReader {
            view: &view,
            readable: &readable,
            seal: &seal,
            moves_cursor: false,
            until: Instant::now() + TIME,
        };
        let (filter, cursor) = (filter.as_ref(), cursor.as_deref());
        reader.digest(tx, names, source, filter, cursor).map(Some)
    });
    let part = read.await?.ok_or(ApiError::NotFound)?;
    part.map(Json).ok_or_else(|| {
        ApiError::Unprocessable(
            "the cursor is not from a digest of this library and filter; begin without one"
                .to_owned(),
        )
    })
}

/// The time after which an answer is a part of the digest.
const TIME: Duration = Duration::from_millis(500);
/// The largest number of turns in which a request stores digests.
const MAX_TURNS: usize = 250;
