use axum::{
    Json,
    http::{StatusCode, header::WWW_AUTHENTICATE},
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
    /// Only for whoever has the operator's token.
    Unauthorized {
        /// Whether another token came with the request.
        presented: bool,
    },
    /// Not for this client.
    Forbidden(&'static str),
    /// Not with that method.
    MethodNotAllowed,
    /// More than is taken at once.
    TooLarge(&'static str),
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
            Self::Unauthorized { presented: false } => (
                StatusCode::UNAUTHORIZED,
                "The operator's token is needed here",
            ),
            Self::Unauthorized { presented: true } => {
                (StatusCode::UNAUTHORIZED, "The access token is invalid")
            }
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, *why),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::TooLarge(most) => (StatusCode::PAYLOAD_TOO_LARGE, *most),
            Self::NotAcceptable(forms) => (StatusCode::NOT_ACCEPTABLE, *forms),
            Self::Refused(why) => (StatusCode::SERVICE_UNAVAILABLE, why.as_str()),
            Self::NotReady(why) => (StatusCode::SERVICE_UNAVAILABLE, *why),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong here; the server's log tells what",
            ),
        };
        let body = Json(ErrorBody { error });
        let challenge = match &self {
            Self::Unauthorized { presented: false } => "Bearer realm=\"driftline\"",
            Self::Unauthorized { presented: true } => {
                "Bearer realm=\"driftline\", error=\"invalid_token\""
            }
            _ => return (status, body).into_response(),
        };
        (status, [(WWW_AUTHENTICATE, challenge)], body).into_response()
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}
