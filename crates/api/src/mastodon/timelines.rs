//! Pages of timelines.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::{CONTENT_TYPE, LINK},
    response::{IntoResponse, Response},
};
use driftline_store::{
    LocalId, SourceId, StoreError, Tx, source,
    timeline::{self, Range, TimelinePost, Viewer},
};

use super::{JSON, local_references::LocalReferences, page_query::PageQuery, status::Status};
use crate::{
    App,
    auth::Operator,
    transport::{Address, ApiError, PathId},
};

/// The public posts of every source.
pub(super) async fn public(
    State(app): State<Arc<App>>,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let (range, local) = (query.range, query.local);
    let written = app.store.read(move |tx| {
        let posts = match local {
            true => Vec::new(),
            false => timeline::public(tx, &range)?,
        };
        Page::write(tx, &posts)
    });
    let page = written.await?;
    Ok(page.answer(&address, "/api/v1/timelines/public", &query))
}

/// The public posts of a source.
pub(super) async fn list(
    _: Operator,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let (range, source) = (query.range, SourceId::new(id));
    let page = app.store.read(move |tx| source_page(tx, source, &range));
    let page = page.await?.ok_or(ApiError::NotFound)?;
    let path = format!("/api/v1/timelines/list/{id}");
    Ok(page.answer(&address, &path, &query))
}

/// `None` if the source may not be read.
fn source_page(tx: &mut Tx<'_>, id: SourceId, range: &Range) -> Result<Option<Page>, StoreError> {
    if !source::by_id(tx, id)?.is_some_and(|source| source.readable) {
        return Ok(None);
    }
    let posts = timeline::source(tx, id, range, Viewer::Anonymous)?;
    Page::write(tx, &posts).map(Some)
}

/// The body of a page and its range.
struct Page {
    body: Vec<u8>,
    /// The newest and the oldest ID; `None` if it is empty.
    ends: Option<(LocalId, LocalId)>,
}

impl Page {
    fn write(tx: &mut Tx<'_>, posts: &[TimelinePost]) -> Result<Self, StoreError> {
        let statuses: Vec<Status<'_>> = posts.iter().map(Status::of).collect();
        let local = LocalReferences::find(tx, &statuses)?;
        let raw_bytes: usize = posts.iter().map(|post| post.raw.len()).sum();
        let mut body = Vec::with_capacity(raw_bytes + posts.len() * ADDED_BYTES);
        body.push(b'[');
        for (index, status) in statuses.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            status.write(&mut body, &local, None);
        }
        body.push(b']');
        let ends = posts.first().zip(posts.last());
        let ends = ends.map(|(newest, oldest)| (newest.id, oldest.id));
        Ok(Self { body, ends })
    }

    fn answer(self, address: &Address, path: &str, query: &PageQuery) -> Response {
        let link = self
            .ends
            .and_then(|ends| query.link(&address.of(path), ends));
        let mut response = ([(CONTENT_TYPE, JSON)], self.body).into_response();
        if let Some(link) = link {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

/// About how much longer a post gets than its upstream JSON.
const ADDED_BYTES: usize = 256;
