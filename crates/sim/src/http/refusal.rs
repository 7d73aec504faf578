//! How a server says no, in the words of its API.

use axum::{http::StatusCode, response::Response};
use driftline_core::api::Api;
use serde_json::{Value, json};

use super::json_answer::json as json_answer;
use crate::faults_config::PoisonAnswer;

/// A reason to refuse a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A parameter is wrong: its name, its value, and what is wrong with it.
    BadRequest {
        name: String,
        value: String,
        message: String,
    },
    /// No credentials, or revoked or wrong ones.
    Unauthorized,
    /// They do not reach this far.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// There is no such path.
    NoSuchPath,
    MethodNotAllowed,
    Unprocessable(String),
    /// More IDs than one look-up may name, on Twitter.
    TooMany,
    Throttled,
    Internal,
    /// No streams for now, on Mastodon.
    NotNow,
    /// Nothing comes, for as long as a stall lasts.
    Silent,
    /// The cap on posts is reached.
    Capped {
        forbidden: bool,
    },
}

impl Refusal {
    pub(crate) fn bad(name: &str, value: &str, message: impl Into<String>) -> Self {
        Self::BadRequest {
            name: name.to_owned(),
            value: value.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn unreadable() -> Self {
        Self::bad("", "", "The query cannot be read")
    }

    pub(crate) fn poison(answer: PoisonAnswer) -> Self {
        match answer {
            PoisonAnswer::BadRequest => Self::bad("id", "", "The request cannot be answered"),
            PoisonAnswer::Unprocessable => {
                Self::Unprocessable("The request cannot be answered".to_owned())
            }
            PoisonAnswer::InternalError => Self::Internal,
            PoisonAnswer::Forbidden => Self::Forbidden,
            PoisonAnswer::Silence => Self::Silent,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest { .. } => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::TooMany | Self::Capped { forbidden: true } => {
                StatusCode::FORBIDDEN
            }
            Self::NotFound | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Throttled | Self::Capped { forbidden: false } => StatusCode::TOO_MANY_REQUESTS,
            Self::NotNow => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal | Self::Silent => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Marks an answer that is not to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence;

/// The answer that refuses.
pub(crate) fn refuse(api: Api, refusal: &Refusal) -> Response {
    let body = match api {
        Api::Mastodon => mastodon(refusal),
        Api::Twitter => twitter(refusal),
        Api::X => x(refusal),
    };
    let mut response = json_answer(refusal.status(), body.to_string());
    if *refusal == Refusal::Silent {
        response.extensions_mut().insert(Silence);
    }
    response
}

/// `{"error": "…"}`.
fn mastodon(refusal: &Refusal) -> Value {
    let message = match refusal {
        Refusal::BadRequest { message, .. } | Refusal::Unprocessable(message) => message,
        Refusal::Unauthorized => "The access token is invalid",
        Refusal::Forbidden | Refusal::TooMany | Refusal::Capped { .. } => {
            "This action is not allowed"
        }
        Refusal::NotFound => "Record not found",
        Refusal::NoSuchPath => "The page you are looking for isn't here.",
        Refusal::MethodNotAllowed => "Method not allowed",
        Refusal::Throttled => "Too many requests",
        Refusal::NotNow => "Not now",
        Refusal::Internal | Refusal::Silent => "We're sorry, but something went wrong on our end.",
    };
    json!({ "error": message })
}

/// `{"errors": [{"code": …, "message": "…"}]}` with the codes of Twitter's
/// documentation.
fn twitter(refusal: &Refusal) -> Value {
    let (code, message) = match refusal {
        Refusal::BadRequest { message, .. } | Refusal::Unprocessable(message) => {
            (214, message.as_str())
        }
        Refusal::Unauthorized => (89, "Invalid or expired token."),
        Refusal::Forbidden => (179, "Sorry, you are not authorized to see this status."),
        Refusal::Capped { .. } => (
            453,
            "You currently have access to a subset of the endpoints.",
        ),
        Refusal::NotFound => (144, "No status found with that ID."),
        Refusal::NoSuchPath | Refusal::MethodNotAllowed => (34, "Sorry, that page does not exist."),
        Refusal::TooMany => (18, "Too many terms specified in query"),
        Refusal::Throttled => (88, "Rate limit exceeded"),
        Refusal::Internal | Refusal::NotNow | Refusal::Silent => (131, "Internal error"),
    };
    json!({ "errors": [{ "code": code, "message": message }] })
}

/// Problem details.
fn x(refusal: &Refusal) -> Value {
    let status = refusal.status();
    match refusal {
        Refusal::BadRequest {
            name,
            value,
            message,
        } => json!({
            "errors": [{ "parameters": { name: [value] }, "message": message }],
            "title": "Invalid Request",
            "detail": "One or more parameters to your request was invalid.",
            "type": problem("invalid-request"),
        }),
        Refusal::Capped { .. } => json!({
            "account_id": 1,
            "product_name": "standard-basic",
            "title": "UsageCapExceeded",
            "period": "Monthly",
            "scope": "Product",
            "detail": "Usage cap exceeded: Monthly product cap",
            "type": problem("usage-capped"),
        }),
        _ => {
            let title = status.canonical_reason().unwrap_or("Error");
            json!({
                "title": title,
                "detail": title,
                "type": "about:blank",
                "status": status.as_u16(),
            })
        }
    }
}

/// The name of one of X's problems.
pub(crate) fn problem(name: &str) -> String {
    format!("https://api.twitter.com/2/problems/{name}")
}
