use axum::http::HeaderValue;
use driftline_store::LocalId;

use super::page_query::PageQuery;
use crate::transport::Address;

/// The `Link` header of a page from its newest to its oldest ID. The older page comes first, where
/// toot expects it.
pub(super) fn header(
    address: &Address,
    path: &str,
    query: &PageQuery,
    (newest, oldest): (LocalId, LocalId),
) -> Option<HeaderValue> {
    let page = address.of(path);
    let next = query.neighbour("max_id", oldest);
    let prev = query.neighbour("min_id", newest);
    HeaderValue::try_from(format!(
        "<{page}?{next}>; rel=\"next\", <{page}?{prev}>; rel=\"prev\""
    ))
    .ok()
}
