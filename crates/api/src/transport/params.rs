use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::ApiError;
use crate::App;

/// The parameters of a request: of its query, and of its body as a form or as JSON. A name that comes twice,
/// or ends with `[]`, is a list of its values: refused where one value is expected, and passed over, as Mastodon.py
/// needs it, where the route knows no such name.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Params<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let headers = request.headers().clone();
        let body = Bytes::from_request(request, app).await;
        let body = body.map_err(|refused: BytesRejection| match refused.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge("The request is too large"),
            _ => bad("The body cannot be read"),
        })?;
        let mut params = form(query.as_bytes());
        for (name, value) in read(&headers, &body)? {
            params.insert(name, value);
        }
        let params = T::deserialize(Value::Object(params));
        // The error may quote a value, which may be secret.
        params.map(Self).map_err(|error| {
            let missing = error.to_string();
            let missing = missing.strip_prefix("missing field ");
            missing.map_or_else(
                || bad("A parameter has another form than expected"),
                |field| ApiError::BadParameter(format!("The parameter {field} is missing")),
            )
        })
    }
}

fn read(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    match kind.trim().to_ascii_lowercase().as_str() {
        "application/json" => match serde_json::from_slice(body) {
            Ok(Value::Object(params)) => Ok(params),
            _ => Err(bad("The body is not a JSON object")),
        },
        "" | "application/x-www-form-urlencoded" => Ok(form(body)),
        _ => Err(bad("The body has to be a form or JSON")),
    }
}

fn form(text: &[u8]) -> Map<String, Value> {
    let mut params = Map::new();
    for (name, value) in form_urlencoded::parse(text) {
        let value = Value::String(value.into_owned());
        let (name, is_list) = match name.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (&*name, false),
        };
        match params.get_mut(name) {
            Some(Value::Array(values)) => values.push(value),
            Some(known) => *known = Value::Array(vec![known.take(), value]),
            None if is_list => {
                params.insert(name.to_owned(), Value::Array(vec![value]));
            }
            None => {
                params.insert(name.to_owned(), value);
            }
        }
    }
    params
}

fn bad(why: &str) -> ApiError {
    ApiError::BadParameter(why.to_owned())
}
