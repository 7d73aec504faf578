use std::{convert::Infallible, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};
use driftline_store::timeline::Viewer;

use crate::{App, transport::ApiError};

/// The viewer whom a request is of.
pub(crate) struct ViewedBy(pub(crate) Viewer);

/// [`Viewer::Operator`] as the sender of a request. A route that takes it refuses all others.
pub(crate) struct Operator;

impl FromRequestParts<Arc<App>> for ViewedBy {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let operator = Operator::from_request_parts(parts, app).await;
        Ok(Self(match operator {
            Ok(Operator) => Viewer::Operator,
            Err(_) => Viewer::Anonymous,
        }))
    }
}

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        app.authorization.check(&parts.headers).map(|()| Self)
    }
}
