//! The public timeline.

use driftline_store::{
    StoreError, Tx,
    timeline::{self, Range, Stretch},
    viewer::ReadableSources,
};

use crate::{
    auth::{MayRead, needs},
    mastodon::{
        entities::Status,
        page::Page,
        page_query::{MediaParams, PageParams, PageQuery, PublicParams},
        view::View,
    },
    transport::{ApiResult, Problem},
};

/// The public posts of every source that the caller may read, newest first.
#[utoipa::path(
    get, path = "/api/v1/timelines/public", tag = "timelines", params(PublicParams, PageParams, MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
pub(crate) async fn public(reader: MayRead<needs::ReadStatuses>, query: PageQuery) -> ApiResult {
    if query.local {
        return Ok(Page::empty().answer(&query));
    }
    let (view, only_media) = (View::new(&reader), query.only_media);
    let read =
        move |tx: &mut Tx<'_>, range: &Range| stretch(tx, range, only_media, &view).map(Some);
    let page = Page::picked(&reader, query.range, read).await?;
    Ok(page.answer(&query))
}

/// A part of a viewer's public timeline, without what the viewer does not want to see.
pub(crate) fn stretch(
    tx: &mut Tx<'_>,
    range: &Range,
    only_media: bool,
    view: &View,
) -> Result<Stretch, StoreError> {
    let hidden = view.hidden(tx)?;
    let readable = ReadableSources::load(tx, view.viewer)?;
    let hidden = hidden.read(tx)?.and_without_media(only_media);
    timeline::public_picked(tx, range, &readable, hidden.picks())
}
