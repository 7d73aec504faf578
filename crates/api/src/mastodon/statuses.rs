//! Single posts.

use std::{slice, sync::Arc};

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use driftline_store::{
    LocalId, StoreError, Tx, history,
    timeline::{self, Viewer},
};

use super::{JSON, local_references::LocalReferences, status::Status};
use crate::{
    App,
    transport::{ApiError, PathId},
};

/// A post, by its own ID or by that of one of its entries.
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let id = LocalId::new(id);
    answer(app.store.read(move |tx| status(tx, id)).await?)
}

/// A post's versions, the oldest first, the one that is shown now at the end.
pub(super) async fn history(
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let id = LocalId::new(id);
    answer(app.store.read(move |tx| edits(tx, id)).await?)
}

fn status(tx: &mut Tx<'_>, id: LocalId) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(post) = timeline::status(tx, id, Viewer::Anonymous)? else {
        return Ok(None);
    };
    let status = Status::of(&post);
    let local = LocalReferences::find(tx, slice::from_ref(&status))?;
    let mut body = Vec::with_capacity(post.raw.len() * 2);
    status.write(&mut body, &local, None);
    Ok(Some(body))
}

fn edits(tx: &mut Tx<'_>, id: LocalId) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(post) = timeline::status(tx, id, Viewer::Anonymous)? else {
        return Ok(None);
    };
    let versions = history::versions(tx, post.post_id)?;
    let status = Status::of(&post);
    let local = LocalReferences::find(tx, slice::from_ref(&status))?;
    let mut body = Vec::with_capacity(post.raw.len() * (versions.len() + 1));
    body.push(b'[');
    for version in &versions {
        if status.write_version(&mut body, &local, version) {
            body.push(b',');
        }
    }
    status.write_edit(&mut body, &local);
    body.push(b']');
    Ok(Some(body))
}

fn answer(body: Option<Vec<u8>>) -> Result<Response, ApiError> {
    let body = body.ok_or(ApiError::NotFound)?;
    Ok(([(CONTENT_TYPE, JSON)], body).into_response())
}
