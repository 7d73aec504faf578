use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The parameters of a request's path. Invalid percent-encoding answers 404, in JSON like every error.
pub(crate) struct PathText<T = String>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathText<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(texts)| Self(texts))
            .map_err(|_| ApiError::NotFound)
    }
}
