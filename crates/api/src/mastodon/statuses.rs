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
    answer(&app, id, |_, status, local| {
        let mut body = Vec::with_capacity(status.post().raw.len() * 2);
        status.write(&mut body, local, None);
        Ok(body)
    })
    .await
}

/// A post's versions, the oldest first, the one that is shown now at the end.
pub(super) async fn history(
    State(app): State<Arc<App>>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    answer(&app, id, |tx, status, local| {
        let versions = history::versions(tx, status.post().post_id)?;
        let mut body = Vec::with_capacity(status.post().raw.len() * (versions.len() + 1));
        body.push(b'[');
        for version in &versions {
            if status.write_version(&mut body, local, version) {
                body.push(b',');
            }
        }
        status.write_edit(&mut body, local);
        body.push(b']');
        Ok(body)
    })
    .await
}

/// Answers what `write` makes of the post of that ID.
async fn answer(
    app: &App,
    id: u64,
    write: fn(&mut Tx<'_>, &Status<'_>, &LocalReferences) -> Result<Vec<u8>, StoreError>,
) -> Result<Response, ApiError> {
    let written = app.store.read(move |tx| {
        let Some(post) = timeline::status(tx, LocalId::new(id), Viewer::Anonymous)? else {
            return Ok(None);
        };
        let status = Status::of(&post);
        let local = LocalReferences::find(tx, slice::from_ref(&status))?;
        write(tx, &status, &local).map(Some)
    });
    let body = written.await?.ok_or(ApiError::NotFound)?;
    Ok(([(CONTENT_TYPE, JSON)], body).into_response())
}
