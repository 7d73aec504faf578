//! Pages of timelines.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::State,
    http::header::{CONTENT_TYPE, LINK},
    response::{IntoResponse, Response},
};
use driftline_mastodon::has_media;
use driftline_store::{
    InstanceId, LocalId, SourceId, SourceKey, StoreError, Tx,
    instance::{self, Instance},
    source,
    timeline::{self, Range, Stretch, TimelinePost, Viewer},
};

use super::{
    JSON, answer,
    entities::Status,
    lists::is_the_operators,
    local_references::{LocalReferences, Unmapped},
    page_query::{PageParams, PageQuery, PublicParams},
    status::Shown,
};
use crate::{
    App,
    auth::{MayRead, OperatorOrAccount, needs},
    description::ids::ListId,
    transport::{Address, ApiError, PathId, Problem},
};

/// The public posts of every source that the caller may read, newest first.
#[utoipa::path(
    get, path = "/api/v1/timelines/public", tag = "timelines", params(PublicParams, PageParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
pub(super) async fn public(
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    let (viewer, range) = (caller.viewer(), query.range);
    let page = if query.local {
        answer::read(&app, move |tx| Page::write(tx, &[], viewer)).await?
    } else if query.only_media {
        Page::picked(&app, range, viewer, move |tx, range| {
            timeline::public_picked(tx, range, viewer, &with_media).map(Some)
        })
        .await?
    } else {
        let written = answer::read(&app, move |tx| {
            let posts = timeline::public(tx, &range, viewer)?;
            Page::write(tx, &posts, viewer)
        });
        written.await?
    };
    Ok(page.answer(&address, "/api/v1/timelines/public", &query))
}

/// The posts of a list: of a source.
#[utoipa::path(
    get, path = "/api/v1/timelines/list/{id}", tag = "timelines", params(("id" = ListId, Path), PageParams),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem), (status = 404, body = Problem)),
)]
pub(super) async fn list(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
    address: Address,
    query: PageQuery,
) -> Result<Response, ApiError> {
    // Sources are the operator's.
    let OperatorOrAccount::Operator = reader else {
        return Err(ApiError::NotFound);
    };
    let (range, source) = (query.range, SourceId::new(id));
    let page = if query.only_media {
        let picked = Page::picked(&app, range, Viewer::Operator, move |tx, range| {
            let Some(key) = readable(tx, source)? else {
                return Ok(None);
            };
            timeline::source_picked(tx, key, range, Viewer::Operator, &with_media).map(Some)
        });
        picked.await?
    } else {
        let page = answer::read(&app, move |tx| source_page(tx, source, &range));
        page.await?.ok_or(ApiError::NotFound)?
    };
    let path = format!("/api/v1/timelines/list/{id}");
    Ok(page.answer(&address, &path, &query))
}

/// `None` if the source may not be read.
fn source_page(
    tx: &mut Tx<'_>,
    id: SourceId,
    range: &Range,
) -> Result<(Option<Page>, Unmapped), StoreError> {
    let Some(source) = readable(tx, id)? else {
        return Ok((None, Vec::new()));
    };
    let posts = timeline::source(tx, source, range, Viewer::Operator)?;
    let (page, unmapped) = Page::write(tx, &posts, Viewer::Operator)?;
    Ok((Some(page), unmapped))
}

fn readable(tx: &mut Tx<'_>, id: SourceId) -> Result<Option<SourceKey>, StoreError> {
    let source = source::by_id(tx, id)?.filter(is_the_operators);
    Ok(source.map(|source| source.key()))
}

fn with_media(post: &TimelinePost) -> bool {
    has_media(&post.raw)
}

/// The body of a page and its range.
struct Page {
    body: Vec<u8>,
    /// The newest and the oldest ID; `None` if it is empty.
    ends: Option<(LocalId, LocalId)>,
}

impl Page {
    /// A page of picked posts, of as many reads as fill it. None is held up for long, and a client
    /// that has gone away ends them.
    async fn picked(
        app: &App,
        range: Range,
        viewer: Viewer,
        stretch: impl Fn(&mut Tx<'_>, &Range) -> Result<Option<Stretch>, StoreError>
        + Clone
        + Send
        + 'static,
    ) -> Result<Self, ApiError> {
        let mut posts = Vec::new();
        let mut next = Some(range);
        while let Some(range) = next {
            let stretch = stretch.clone();
            let read = app.store.read(move |tx| stretch(tx, &range)).await?;
            let mut read = read.ok_or(ApiError::NotFound)?;
            match range.min {
                // Upward, what is read later is newer.
                Some(_) => posts.splice(0..0, read.posts).for_each(drop),
                None => posts.append(&mut read.posts),
            }
            next = read.rest;
        }
        let posts: Arc<[TimelinePost]> = posts.into();
        answer::read(app, move |tx| Self::write(tx, &posts, viewer)).await
    }

    /// Also returns what it names without a local ID.
    fn write(
        tx: &mut Tx<'_>,
        posts: &[TimelinePost],
        viewer: Viewer,
    ) -> Result<(Self, Unmapped), StoreError> {
        let instances: HashMap<InstanceId, Instance> = instance::all(tx)?
            .into_iter()
            .map(|instance| (instance.id, instance))
            .collect();
        let shown = posts.iter().filter_map(|post| {
            let instance = instances.get(&post.instance)?;
            Some(Shown::status(post, instance))
        });
        let shown: Vec<Shown> = shown.collect();
        let (local, unmapped) = LocalReferences::find(tx, &shown, viewer)?;
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
