use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Json, extract::rejection::JsonRejection, http::StatusCode};
use driftline_core::sync::{LibraryNews, LibraryRequest, LibraryState, SyncAnswer, SyncRequest};
use driftline_store::{
    LocalAccountId, StoreError, Tx,
    change_feed::{self, FeedSource},
    nonce,
    sync::{Chunk, Cursor, CursorError, ShownPosts, chunk_with_copies, count_objects},
    timeline::TimelinePost,
    viewer::LazyReadableSources,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ACCOUNT, bookmark_copy,
    cursor_seal::CursorSeal,
    library_filter::LibraryFilter,
    names,
    source_library::{self, SourceReader},
};
use crate::{
    auth::{LoggedIn, needs, opaque_secret::fill_random},
    mastodon::view::View,
    transport::{ApiError, ApiResult, JsonResult, Problem},
};

/// Returns what a replica lacks of its libraries.
#[utoipa::path(
    post, path = "/api/driftline/v1/sync", tag = "sync", request_body = SyncRequest,
    security(("account" = ["read"])),
    responses((status = 200, body = SyncAnswer), (status = 400, body = Problem), (status = 422, body = Problem, description = "A limit is out of its range, a library is named twice, or a filter has a term that it must not have"), (status = 503, body = Problem, description = "Too many long requests of the account wait already")),
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
    let mut names: Vec<&str> = request.libraries.iter().map(|of| &*of.library).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(ApiError::Unprocessable(
            "a request names each library once".to_owned(),
        ));
    }
    let view = View::without_overlays(&caller);
    let requests = request.libraries.into_iter().map(|request| {
        let filter = LibraryFilter::of_library(&request.library, request.filter.as_ref())?;
        Ok((request, filter))
    });
    let requests = requests.collect::<ApiResult<Vec<_>>>()?;
    let has_sources = requests.iter().any(|(of, _)| of.library != ACCOUNT);
    let read = move |tx: &mut Tx<'_>, account: LocalAccountId| {
        read_all(tx, account, &requests, &view, limits)
    };
    let answer = match has_sources {
        // The search for entries that the filter selects may take long.
        true => caller.long_read(read).await?,
        false => caller.read(read).await?,
    };
    Ok(Json(answer))
}

/// Libraries of which a replica may hold a copy.
#[derive(Serialize, ToSchema)]
pub(super) struct LibraryName {
    /// The name in requests.
    library: String,
    /// The name of the source; absent for the account's own library.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// Returns the libraries that the account may read: its own, and those of sources.
#[utoipa::path(
    get, path = "/api/driftline/v1/sync/libraries", tag = "sync",
    security(("account" = ["read"])),
    responses((status = 200, body = [LibraryName])),
)]
pub(super) async fn libraries(caller: LoggedIn<needs::Read>) -> JsonResult<Vec<LibraryName>> {
    let viewer = caller.viewer;
    let sources = caller.read(move |tx, _| change_feed::sources(tx)).await?;
    let own = LibraryName {
        library: ACCOUNT.to_owned(),
        source: None,
    };
    let sources = sources
        .into_iter()
        .filter(|source| source.shows(viewer).is_some());
    let sources = sources.map(|source| LibraryName {
        library: source_library::name(&source),
        source: Some(source.name),
    });
    Ok(Json([own].into_iter().chain(sources).collect()))
}

/// The limits of an answer that are left.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) entries: u32,
    pub(super) bytes: usize,
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
        let objects = news
            .objects
            .iter()
            .map(|object| ENTRY_BYTES + object.key.as_str().len() + object.value.get().len());
        let gone = news
            .gone
            .iter()
            .map(|gone| ENTRY_BYTES + gone.key.as_str().len());
        let bytes: usize = objects.chain(gone).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        self.entries = match self.bytes {
            0 => 1,
            _ => self.entries.saturating_sub(entries).max(1),
        };
    }
}

/// The answer, all of it from one snapshot.
fn read_all(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    requests: &[(LibraryRequest, Option<LibraryFilter>)],
    view: &View,
    mut limits: Limits,
) -> Result<SyncAnswer, StoreError> {
    let (server, name) = names(tx, account)?;
    let seal = CursorSeal::new(&nonce(tx)?);
    let moves_cursor = is_drawn();
    let until = Instant::now() + TIME_TO_FIND;
    let readable = Arc::new(LazyReadableSources::new(view.viewer));
    let view = &view.in_transaction(&readable);
    let mut sources = None;
    let mut all_news = Vec::new();
    for (request, filter) in requests {
        let LibraryRequest {
            library, cursor, ..
        } = request;
        if library == ACCOUNT {
            let cursor = cursor.as_ref().map(|text| text.parse()).transpose();
            // A cursor that this server never gave is of another history.
            let Ok::<Option<Cursor>, CursorError>(cursor) = cursor else {
                all_news.push(LibraryNews::empty(library, LibraryState::Diverged));
                continue;
            };
            let write =
                |tx: &mut Tx<'_>, posts: &[TimelinePost]| bookmark_copy::write(tx, posts, view);
            let (cursor, Limits { entries, bytes }) = (cursor.as_ref(), limits);
            let shown = ShownPosts {
                sources: &readable,
                write: &write,
            };
            let part = chunk_with_copies(tx, account, cursor, entries, bytes, shown)?;
            if let Some(part) = part {
                let is_first = part.state == LibraryState::Full
                    && cursor.is_none_or(|cursor| cursor.below.is_none());
                let mut news = of_chunk(library, part, is_first);
                if is_first && news.more {
                    news.count = Some(count_objects(tx, account)?);
                }
                limits.spend(&news);
                all_news.push(news);
            }
            continue;
        }
        let sources: &Vec<FeedSource> = match &mut sources {
            Some(known) => known,
            unknown => unknown.insert(change_feed::sources(tx)?),
        };
        let Some(source) = source_library::find(sources, library, view.viewer) else {
            all_news.push(LibraryNews::empty(library, LibraryState::Gone));
            continue;
        };
        let reader = SourceReader {
            view,
            readable: &readable,
            seal: &seal,
            moves_cursor,
            until,
        };
        let news = reader.news(tx, source, filter.as_ref(), cursor.as_deref(), limits)?;
        if let Some(news) = news {
            limits.spend(&news);
            all_news.push(news);
        }
    }
    Ok(SyncAnswer {
        server,
        account: name,
        news: all_news,
    })
}

/// True for one of 64 requests.
fn is_drawn() -> bool {
    let mut random = [0; 1];
    fill_random(&mut random).is_ok() && random[0] < 4
}

fn of_chunk(library: &str, chunk: Chunk, is_first: bool) -> LibraryNews {
    let has_cursor = chunk.state != LibraryState::Diverged;
    LibraryNews {
        cursor: has_cursor.then(|| chunk.cursor.to_string()),
        first: is_first,
        more: chunk.more,
        objects: chunk.objects,
        gone: chunk.gone,
        ..LibraryNews::empty(library, chunk.state)
    }
}

/// The number of libraries that a request names.
pub(super) const MAX_LIBRARIES: usize = 200;
/// The time for which a request looks for objects in the sources in which it has not found any yet.
const TIME_TO_FIND: Duration = Duration::from_millis(500);
/// The size of an object or tombstone without its key and value, in bytes.
const ENTRY_BYTES: usize = 80;
