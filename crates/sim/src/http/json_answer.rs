//! Answers in JSON.

use axum::{
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: String) -> Response {
    (status, [(CONTENT_TYPE, JSON)], body).into_response()
}

pub(super) const JSON: &str = "application/json; charset=utf-8";
