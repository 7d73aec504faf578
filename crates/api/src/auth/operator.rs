use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{App, transport::ApiError};

/// The operator as the sender of a request. A route that takes it refuses all others.
pub(crate) struct Operator;

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        app.authorization
            .check(&parts.headers, app.public_base.as_ref())
            .map(|()| Self)
    }
}
