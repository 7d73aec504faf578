use axum::{extract::FromRequestParts, http::request::Parts};
use driftline_store::LocalId;

use super::{error::ApiError, path_text::PathText};

/// The ID in a request's path. An invalid ID answers 404, as in Mastodon.
pub(crate) struct PathId(pub(crate) u64);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathText(text) = PathText::<String>::from_request_parts(parts, state).await?;
        let id: LocalId = text.parse().map_err(|_| ApiError::NotFound)?;
        Ok(Self(id.raw()))
    }
}
