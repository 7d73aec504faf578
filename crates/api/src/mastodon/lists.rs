//! Sources as lists.

use std::sync::Arc;

use axum::{Json, extract::State};
use driftline_mastodon::List;
use driftline_store::{
    Owner, SourceId,
    source::{self, Source},
};

use super::entities;
use crate::{
    App,
    auth::{OperatorOrAccount, needs},
    description::ids::ListId,
    transport::{ApiError, PathId, Problem},
};

/// The lists: the sources that may be read.
///
/// They are the operator's: an account has no lists.
#[utoipa::path(
    get, path = "/api/v1/lists", tag = "lists",
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = [entities::List])),
)]
pub(super) async fn all(
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
) -> Result<Json<Vec<List<'static>>>, ApiError> {
    let OperatorOrAccount::Operator = reader else {
        return Ok(Json(Vec::new()));
    };
    let sources = app.store.read(source::list).await?;
    let readable = sources.into_iter().filter(is_the_operators);
    Ok(Json(readable.map(list_of).collect()))
}

/// A list.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = entities::List), (status = 404, body = Problem)),
)]
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
    match source.filter(is_the_operators) {
        Some(source) => Ok(Json(list_of(source))),
        None => Err(ApiError::NotFound),
    }
}

/// Whether a source is a list of the operator's: accounts' own are not shown to them.
pub(super) fn is_the_operators(source: &Source) -> bool {
    source.readable && source.owner == Owner::Operator
}

fn list_of(source: Source) -> List<'static> {
    List {
        id: source.id.to_string().into(),
        title: source.name.into(),
        replies_policy: "list".into(),
        exclusive: false,
    }
}
