//! Pages of timelines.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::State,
    http::header::{CONTENT_TYPE, LINK},
    response::{IntoResponse, Response},
};
use driftline_store::{
    InstanceId, LocalId, SourceId, StoreError, Tx,
    instance::{self, Instance},
    source,
    timeline::{self, Range, TimelinePost, Viewer},
};

use super::{
    JSON, answer,
    local_references::{LocalReferences, Unmapped},
    page_query::PageQuery,
    status::Shown,
};
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
    let written = answer::read(&app, move |tx| {
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
    let page = answer::read(&app, move |tx| source_page(tx, source, &range));
    let page = page.await?.ok_or(ApiError::NotFound)?;
    let path = format!("/api/v1/timelines/list/{id}");
    Ok(page.answer(&address, &path, &query))
}

/// `None` if the source may not be read.
fn source_page(
    tx: &mut Tx<'_>,
    id: SourceId,
    range: &Range,
) -> Result<(Option<Page>, Unmapped), StoreError> {
    let source = source::by_id(tx, id)?;
    let Some(source) = source.filter(|source| source.readable) else {
        return Ok((None, Vec::new()));
    };
    let posts = timeline::source(tx, source.key(), range, Viewer::Anonymous)?;
    let (page, unmapped) = Page::write(tx, &posts)?;
    Ok((Some(page), unmapped))
}

/// The body of a page and its range.
struct Page {
    body: Vec<u8>,
    /// The newest and the oldest ID; `None` if it is empty.
    ends: Option<(LocalId, LocalId)>,
}

impl Page {
    /// Also returns what it names without a local ID.
    fn write(tx: &mut Tx<'_>, posts: &[TimelinePost]) -> Result<(Self, Unmapped), StoreError> {
        let instances: HashMap<InstanceId, Instance> = instance::all(tx)?
            .into_iter()
            .map(|instance| (instance.id, instance))
            .collect();
        let shown = posts.iter().filter_map(|post| {
            let instance = instances.get(&post.instance)?;
            Some(Shown::status(post, instance))
        });
        let shown: Vec<Shown> = shown.collect();
        let (local, unmapped) = LocalReferences::find(tx, &shown)?;
        let ends = posts.first().zip(posts.last());
        let page = Self {
            body: Shown::list(&shown, &local, None),
            ends: ends.map(|(newest, oldest)| (newest.id, oldest.id)),
        };
        Ok((page, unmapped))
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
