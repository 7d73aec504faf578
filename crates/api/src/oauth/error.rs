use std::borrow::Cow;

use axum::{
    Json,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::transport::ApiError;

/// What went wrong, as OAuth says it.
#[derive(Serialize, ToSchema)]
pub(super) struct OAuthProblem {
    /// A word of RFC 6749.
    error: &'static str,
    /// For people.
    error_description: Cow<'static, str>,
}

/// Why an app gets no token (RFC 6749, 5.2).
#[derive(Debug)]
pub(super) enum OAuthError {
    /// The app is unknown, or its secret wrong.
    InvalidClient,
    /// The code or the passphrase is wrong, or not good any more.
    InvalidGrant,
    /// The scopes are unknown, or more than the app registered.
    InvalidScope,
    /// A parameter is missing or malformed.
    InvalidRequest(Cow<'static, str>),
    /// There is no such grant here.
    UnsupportedGrantType,
    /// The token is another app's.
    UnauthorizedClient,
    /// Something that is no matter of OAuth.
    Other(ApiError),
}

impl<E: Into<ApiError>> From<E> for OAuthError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl OAuthError {
    /// A parameter is missing or malformed.
    pub(super) const fn invalid_request(why: &'static str) -> Self {
        Self::InvalidRequest(Cow::Borrowed(why))
    }

    /// The same error of a request's parameters, in OAuth's form.
    pub(super) fn of_parameters(error: ApiError) -> Self {
        match error {
            ApiError::BadParameter(why) => Self::InvalidRequest(Cow::Owned(why)),
            error => Self::Other(error),
        }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let (status, error, description) = match self {
            Self::InvalidClient => (
                StatusCode::UNAUTHORIZED,
                "invalid_client",
                "Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method.",
            ),
            Self::InvalidGrant => (
                StatusCode::BAD_REQUEST,
                "invalid_grant",
                "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client.",
            ),
            Self::InvalidScope => (
                StatusCode::BAD_REQUEST,
                "invalid_scope",
                "The requested scope is invalid, unknown, or malformed.",
            ),
            Self::InvalidRequest(why) => {
                return answer(StatusCode::BAD_REQUEST, "invalid_request", why);
            }
            Self::UnsupportedGrantType => (
                StatusCode::BAD_REQUEST,
                "unsupported_grant_type",
                "The authorization grant type is not supported by the authorization server.",
            ),
            Self::UnauthorizedClient => (
                StatusCode::FORBIDDEN,
                "unauthorized_client",
                "You are not authorized to revoke this token",
            ),
            Self::Other(error) => return error.into_response(),
        };
        answer(status, error, Cow::Borrowed(description))
    }
}

fn answer(
    status: StatusCode,
    error: &'static str,
    error_description: Cow<'static, str>,
) -> Response {
    let body = Json(OAuthProblem {
        error,
        error_description,
    });
    let no_store = (CACHE_CONTROL, "no-store");
    match status {
        StatusCode::UNAUTHORIZED => {
            let challenge = (WWW_AUTHENTICATE, "Basic realm=\"driftline\"");
            (status, [no_store, challenge], body).into_response()
        }
        _ => (status, [no_store], body).into_response(),
    }
}
