use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use driftline_store::StoreError;
use serde::Serialize;

/// Why a request has no answer, as its client is told.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// A parameter makes no sense.
    BadParameter(String),
    /// There is nothing at that address, or nothing for this reader.
    NotFound,
    /// Not for this client.
    Forbidden(&'static str),
    /// Not with that method.
    MethodNotAllowed,
    /// In none of the forms that the client takes.
    NotAcceptable(&'static str),
    /// Not at this moment.
    Refused(String),
    /// The server is not ready.
    NotReady(&'static str),
    /// Something that only the log tells.
    Internal,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a request met an error of the store");
        Self::Internal
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error) = match &self {
            Self::BadParameter(error) => (StatusCode::BAD_REQUEST, error.as_str()),
            Self::NotFound => (StatusCode::NOT_FOUND, "Record not found"),
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, *why),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::NotAcceptable(forms) => (StatusCode::NOT_ACCEPTABLE, *forms),
            Self::Refused(why) => (StatusCode::SERVICE_UNAVAILABLE, why.as_str()),
            Self::NotReady(why) => (StatusCode::SERVICE_UNAVAILABLE, *why),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong here; the server's log tells what",
            ),
        };
        (status, Json(ErrorBody { error })).into_response()
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}
