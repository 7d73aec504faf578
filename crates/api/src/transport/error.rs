use axum::{
    Extension, Json,
    http::{
        StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use driftline_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Serialize, ToSchema)]
pub struct Problem {
    /// The error message, for people.
    error: String,
}

/// Why a request fails, as its client sees it.
#[derive(Debug)]
pub enum ApiError {
    /// A parameter makes no sense.
    BadParameter(String),
    /// The path holds nothing, or nothing that this client may see.
    NotFound,
    /// The request needs the operator's token.
    Unauthorized {
        /// Whether the request had another token.
        presented: bool,
    },
    /// The name, the mail address or the passphrase of a log-in is wrong.
    WrongPassphrase,
    /// The request needs a token.
    TokenNeeded,
    /// The token belongs to no account, and the route acts for somebody.
    AccountNeeded,
    /// The token lacks the route's scope.
    OutsideScopes,
    /// The token's account may not use it now.
    LogInDisabled(&'static str),
    /// A value of the request is refused.
    Unprocessable(String),
    /// It was changed meanwhile.
    Conflict(&'static str),
    /// The client has tried too often.
    TooManyRequests {
        /// When to try again, s.
        retry_after_s: i64,
    },
    /// Not for this client.
    Forbidden(&'static str),
    /// Not with that method.
    MethodNotAllowed,
    /// The request is too large.
    TooLarge(&'static str),
    /// The client accepts none of the formats.
    NotAcceptable(&'static str),
    /// Not available at the moment.
    Refused(String),
    /// The server is not ready.
    NotReady(&'static str),
    /// The store as a whole fails: it is away, full or read-only.
    StoreAway(String),
    /// An error whose details are only in the log.
    Internal,
}

/// What a route answers, or why it fails.
pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

/// What a route answers in JSON, or why it fails.
pub(crate) type JsonResult<T> = ApiResult<Json<T>>;

impl ApiError {
    /// A value of the request is invalid, as Mastodon says it.
    pub(crate) fn invalid(why: impl std::fmt::Display) -> Self {
        Self::Unprocessable(format!("Validation failed: {why}"))
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if error.is_outage() {
            return Self::StoreAway(error.to_string());
        }
        if error.is_nul_in_text() {
            let why = "A text must not hold the character U+0000 (%00)";
            return Self::BadParameter(why.to_owned());
        }
        match error {
            StoreError::IndexBehind { .. } => return Self::Refused(error.to_string()),
            StoreError::SearchTooLong => return Self::BadParameter(error.to_string()),
            _ => {}
        }
        tracing::error!(%error, "a request failed with a store error");
        Self::Internal
    }
}

/// An extension of an answer: why the store could not be used. Many requests fail of one outage, so it is
/// logged where all of them pass, and not here.
#[derive(Clone, Debug)]
pub(crate) struct StoreFailure(pub(crate) String);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, error) = match &self {
            Self::BadParameter(error) => (StatusCode::BAD_REQUEST, error.as_str()),
            Self::NotFound => (StatusCode::NOT_FOUND, "Record not found"),
            Self::Unauthorized { presented: false } => {
                (StatusCode::UNAUTHORIZED, "This needs the operator's token")
            }
            Self::Unauthorized { presented: true } => {
                (StatusCode::UNAUTHORIZED, "The access token is invalid")
            }
            Self::WrongPassphrase => (
                StatusCode::UNAUTHORIZED,
                "No account has that name or address with that passphrase",
            ),
            Self::TokenNeeded => (StatusCode::UNAUTHORIZED, "The access token is invalid"),
            Self::AccountNeeded => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "This method requires an authenticated user",
            ),
            Self::OutsideScopes => (
                StatusCode::FORBIDDEN,
                "This action is outside the authorized scopes",
            ),
            Self::LogInDisabled(why) => (StatusCode::FORBIDDEN, *why),
            Self::Unprocessable(why) => (StatusCode::UNPROCESSABLE_ENTITY, why.as_str()),
            Self::Conflict(why) => (StatusCode::CONFLICT, *why),
            Self::TooManyRequests { .. } => (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, *why),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::TooLarge(limit) => (StatusCode::PAYLOAD_TOO_LARGE, *limit),
            Self::NotAcceptable(forms) => (StatusCode::NOT_ACCEPTABLE, *forms),
            Self::Refused(why) => (StatusCode::SERVICE_UNAVAILABLE, why.as_str()),
            Self::NotReady(why) => (StatusCode::SERVICE_UNAVAILABLE, *why),
            Self::StoreAway(_) => (StatusCode::SERVICE_UNAVAILABLE, STORE_AWAY),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal error; see the server's log",
            ),
        };
        let body = Json(Problem {
            error: error.to_owned(),
        });
        let challenge = match &self {
            Self::StoreAway(failure) => {
                let after = [(RETRY_AFTER, STORE_RETRY_S)];
                let failure = Extension(StoreFailure(failure.clone()));
                return (status, after, failure, body).into_response();
            }
            Self::Refused(_) | Self::NotReady(_) => {
                return (status, [(RETRY_AFTER, RETRY_S)], body).into_response();
            }
            Self::TooManyRequests { retry_after_s } => {
                let after = [(RETRY_AFTER, retry_after_s.to_string())];
                return (status, after, body).into_response();
            }
            Self::OutsideScopes => "Bearer realm=\"driftline\", error=\"insufficient_scope\"",
            Self::TokenNeeded | Self::Unauthorized { presented: false } => {
                "Bearer realm=\"driftline\""
            }
            Self::Unauthorized { presented: true } => {
                "Bearer realm=\"driftline\", error=\"invalid_token\""
            }
            _ => return (status, body).into_response(),
        };
        (status, [(WWW_AUTHENTICATE, challenge)], body).into_response()
    }
}

const STORE_AWAY: &str = "The server's store does not work at the moment; try again in a while";
/// How soon what is busy may be asked again, s.
const RETRY_S: &str = "1";
/// How soon work goes on after an outage, s.
const STORE_RETRY_S: &str = "5";
