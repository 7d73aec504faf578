//! Sources as lists.

use std::sync::Arc;

use axum::{Json, extract::State};
use driftline_store::{
    SourceId,
    source::{self, Source},
};
use serde::Serialize;

use crate::{
    App,
    auth::Operator,
    transport::{ApiError, PathId},
};

/// A source in the form of Mastodon's `List`.
#[derive(Debug, Serialize)]
pub(super) struct List {
    id: SourceId,
    title: String,
    replies_policy: &'static str,
    exclusive: bool,
}

/// The sources that may be read.
pub(super) async fn all(
    _: Operator,
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<List>>, ApiError> {
    let sources = app.store.read(source::list).await?;
    let readable = sources.into_iter().filter(|source| source.readable);
    Ok(Json(readable.map(List::of).collect()))
}

/// One of them.
pub(super) async fn one(
    _: Operator,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<List>, ApiError> {
    let id = SourceId::new(id);
    let source = app.store.read(move |tx| source::by_id(tx, id)).await?;
    match source.filter(|source| source.readable) {
        Some(source) => Ok(Json(List::of(source))),
        None => Err(ApiError::NotFound),
    }
}

impl List {
    fn of(source: Source) -> Self {
        Self {
            id: source.id,
            title: source.name,
            replies_policy: "list",
            exclusive: false,
        }
    }
}
