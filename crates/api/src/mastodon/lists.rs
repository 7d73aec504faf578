//! Sources as lists.

use std::sync::Arc;

use axum::{Json, extract::State};
use driftline_mastodon::List;
use driftline_store::{
    SourceId, Viewer,
    source::{self, Source},
};

use crate::{
    App,
    auth::{OperatorOrAccount, needs},
    transport::{ApiError, PathId},
};

/// The sources that may be read. They are the operator's: an account has no lists.
pub(super) async fn all(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<List<'static>>>, ApiError> {
    let OperatorOrAccount::Operator = reader else {
        return Ok(Json(Vec::new()));
    };
    let sources = app
        .store
        .read(|tx| source::readable(tx, Viewer::Operator))
        .await?;
    let readable = sources.into_iter().filter(|source| source.readable);
    Ok(Json(readable.map(list_of).collect()))
}

/// One of them.
pub(super) async fn one(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Json<List<'static>>, ApiError> {
    let OperatorOrAccount::Operator = reader else {
        return Err(ApiError::NotFound);
    };
    let id = SourceId::new(id);
    let source = app.store.read(move |tx| source::by_id(tx, id)).await?;
    match source.filter(|source| source.readable) {
        Some(source) => Ok(Json(list_of(source))),
        None => Err(ApiError::NotFound),
    }
}

fn list_of(source: Source) -> List<'static> {
    List {
        id: source.id.to_string().into(),
        title: source.name.into(),
        replies_policy: "list".into(),
        exclusive: false,
    }
}
