use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{FromRequest, Multipart, Request, multipart::MultipartError},
    http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::ApiError;
use crate::App;

/// The parameters of a request: of its query, and of its body as a form of either kind or as JSON. A name that comes twice,
/// or ends with `[]`, is a list of its values: refused where one value is expected, and passed over, as Mastodon.py
/// needs it, where the route knows no such name. A secret in the query of a request that is to change something is
/// refused (RFC 6749, 2.3.1).
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Params<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let in_body = match kind_of(request.headers()).as_str() {
            "multipart/form-data" => read_parts(request, app).await?,
            kind => {
                let body = Bytes::from_request(request, app).await;
                let body = body.map_err(|refused| unreadable(refused.status()))?;
                read(kind, &body)?
            }
        };
        let mut params = form(query.as_bytes());
        let secret = SECRETS.iter().find(|name| params.contains_key(**name));
        if let (false, Some(secret)) = (reads, secret) {
            return Err(ApiError::BadParameter(format!(
                "The parameter `{secret}` is a secret: send it in the body, since addresses are logged"
            )));
        }
        for (name, value) in in_body {
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

/// The media type of a body, without its parameters.
fn kind_of(headers: &HeaderMap) -> String {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}

fn read(kind: &str, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match kind {
        "application/json" => match serde_json::from_slice(body) {
            Ok(Value::Object(params)) => Ok(params),
            _ => Err(bad("The body is not a JSON object")),
        },
        "" | "application/x-www-form-urlencoded" => Ok(form(body)),
        _ => Err(bad("The body has to be a form or JSON")),
    }
}

/// The parts of a form with files. A file is an object with its `filename`, so that no route takes it for a text;
/// one that was left empty is passed over.
async fn read_parts(request: Request, app: &Arc<App>) -> Result<Map<String, Value>, ApiError> {
    let unreadable = |refused: MultipartError| unreadable(refused.status());
    let Ok(mut parts) = Multipart::from_request(request, app).await else {
        return Err(bad("The multipart form has no valid boundary"));
    };
    let mut params = Map::new();
    while let Some(part) = parts.next_field().await.map_err(unreadable)? {
        let name = part.name().unwrap_or_default().to_owned();
        let filename = part.file_name().map(str::to_owned);
        let value = part.bytes().await.map_err(unreadable)?;
        match filename {
            Some(_) if value.is_empty() => {}
            Some(filename) => add(&mut params, &name, json!({ "filename": filename })),
            None => add(&mut params, &name, String::from_utf8_lossy(&value).into()),
        }
    }
    Ok(params)
}

fn form(text: &[u8]) -> Map<String, Value> {
    let mut params = Map::new();
    for (name, value) in form_urlencoded::parse(text) {
        add(&mut params, &name, value.into());
    }
    params
}

fn add(params: &mut Map<String, Value>, name: &str, value: Value) {
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
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

fn unreadable(status: StatusCode) -> ApiError {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge("The request is too large"),
        _ => bad("The body cannot be read"),
    }
}

fn bad(why: &str) -> ApiError {
    ApiError::BadParameter(why.to_owned())
}

/// The names of parameters that addresses must not hold.
const SECRETS: [&str; 6] = [
    "password",
    "passphrase",
    "client_secret",
    "code",
    "code_verifier",
    "token",
];
