//! Forms of answers that many routes share.

use axum::{
    Json,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json, value::RawValue};

use crate::transport::{ApiError, JsonResult};

/// An empty object if something was done; not found if there was nothing to do it to.
pub(crate) fn done(is_done: bool) -> JsonResult<Value> {
    match is_done {
        true => Ok(Json(json!({}))),
        false => Err(ApiError::NotFound),
    }
}

/// What was found, as JSON.
pub(crate) fn found<T>(found: Option<T>) -> JsonResult<T> {
    found.map(Json).ok_or(ApiError::NotFound)
}

/// Entities that are written already.
pub(crate) fn written(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, JSON)], body).into_response()
}

/// An entity that is written already, within others.
pub(crate) fn raw(body: Vec<u8>) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(body).ok()?).ok()
}

/// A picture that never changes.
pub(crate) fn picture(png: &'static [u8]) -> Response {
    let headers = [
        (CONTENT_TYPE, "image/png"),
        (CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, png).into_response()
}

/// The content type of every entity.
const JSON: &str = "application/json; charset=utf-8";
