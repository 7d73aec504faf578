use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use driftline_store::LocalId;

use super::error::ApiError;

/// The ID in a request's path. An invalid ID answers 404, as in Mastodon.
pub(crate) struct PathId(pub(crate) u64);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, state).await else {
            return Err(ApiError::NotFound);
        };
        let id: LocalId = text.parse().map_err(|_| ApiError::NotFound)?;
        Ok(Self(id.raw()))
    }
}
