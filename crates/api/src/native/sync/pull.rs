use axum::{Json, extract::rejection::JsonRejection, http::StatusCode};
use driftline_core::sync::{
    LibraryNews, LibraryRequest, LibraryState, SyncAnswer, SyncRequest, SyncedObject,
};
use driftline_store::{
    LocalAccountId, StoreError, Tx,
    sync::{Chunk, Cursor, chunk},
};

use super::{ACCOUNT, names};
use crate::{
    auth::{LoggedIn, needs},
    transport::{ApiError, JsonResult, Problem},
};

/// Returns what a replica lacks of its libraries.
#[utoipa::path(
    post, path = "/api/driftline/v1/sync", tag = "sync", request_body = SyncRequest,
    security(("account" = ["read"])),
    responses((status = 200, body = SyncAnswer), (status = 400, body = Problem), (status = 422, body = Problem, description = "A limit is out of its range, or the cursor is not one of this server")),
)]
pub(super) async fn pull(
    caller: LoggedIn<needs::Read>,
    body: Result<Json<SyncRequest>, JsonRejection>,
) -> JsonResult<SyncAnswer> {
    let Json(request) = body.map_err(|refused| match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge("The body is too long"),
        _ => ApiError::BadParameter(refused.body_text()),
    })?;
    let limits = Limits::of_request(&request)?;
    let wanted = request.libraries.into_iter().map(Wanted::read);
    let wanted: Vec<Wanted> = wanted.collect::<Result<_, _>>()?;
    let answer = caller.read(move |tx, account| answer(tx, account, &wanted, limits));
    Ok(Json(answer.await?))
}

/// A library that a replica asks for.
struct Wanted {
    library: String,
    cursor: Option<Cursor>,
}

impl Wanted {
    fn read(request: LibraryRequest) -> Result<Self, ApiError> {
        let LibraryRequest { library, cursor } = request;
        let cursor = cursor.map(|text| text.parse()).transpose();
        let cursor = cursor.map_err(|error: driftline_store::sync::CursorError| {
            ApiError::Unprocessable(error.to_string())
        })?;
        Ok(Self { library, cursor })
    }
}

/// What is left of the limits of an answer.
#[derive(Clone, Copy)]
struct Limits {
    entries: u32,
    bytes: usize,
}

impl Limits {
    fn of_request(request: &SyncRequest) -> Result<Self, ApiError> {
        let entries = request.max_entries.unwrap_or(500);
        let bytes = request.max_bytes.unwrap_or(1_000_000);
        if !(1..=1_000).contains(&entries) {
            return Err(ApiError::Unprocessable(
                "max_entries must be 1 to 1000".to_owned(),
            ));
        }
        if !(10_000..=4_000_000).contains(&bytes) {
            return Err(ApiError::Unprocessable(
                "max_bytes must be 10000 to 4000000".to_owned(),
            ));
        }
        if request.libraries.len() > MAX_LIBRARIES {
            return Err(ApiError::Unprocessable(format!(
                "a request names at most {MAX_LIBRARIES} libraries"
            )));
        }
        Ok(Self {
            entries,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        })
    }

    /// Each library may have one object at least, so that all of them proceed.
    fn spend(&mut self, news: &LibraryNews) {
        let entries = news.objects.len() + news.gone.len();
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.entries = self.entries.saturating_sub(entries).max(1);
        let values = news
            .objects
            .iter()
            .map(|object| object.value.to_string().len());
        self.bytes = self.bytes.saturating_sub(values.sum());
    }
}

fn answer(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    wanted: &[Wanted],
    mut limits: Limits,
) -> Result<SyncAnswer, StoreError> {
    let (server, name) = names(tx, account)?;
    let mut news = Vec::new();
    for Wanted { library, cursor } in wanted {
        let found = match library == ACCOUNT {
            true => chunk(tx, account, cursor.as_ref(), limits.entries, limits.bytes)?
                .map(|chunk| of_chunk(library, chunk)),
            false => Some(gone(library)),
        };
        if let Some(found) = found {
            limits.spend(&found);
            news.push(found);
        }
    }
    Ok(SyncAnswer {
        server,
        account: name,
        news,
    })
}

fn of_chunk(library: &str, chunk: Chunk) -> LibraryNews {
    let cursor = match chunk.state {
        LibraryState::Diverged | LibraryState::Gone => None,
        LibraryState::Changes | LibraryState::Full => Some(chunk.cursor.to_string()),
    };
    let objects = chunk.objects.into_iter().map(|object| SyncedObject {
        key: object.key,
        usn: object.usn,
        value: object.value.json(),
    });
    LibraryNews {
        library: library.to_owned(),
        state: chunk.state,
        cursor,
        more: chunk.more,
        objects: objects.collect(),
        gone: chunk.gone,
    }
}

/// The account may not read a library of which it knows nothing.
fn gone(library: &str) -> LibraryNews {
    LibraryNews {
        library: library.to_owned(),
        state: LibraryState::Gone,
        cursor: None,
        more: false,
        objects: Vec::new(),
        gone: Vec::new(),
    }
}

/// The number of libraries that a request names.
const MAX_LIBRARIES: usize = 200;
