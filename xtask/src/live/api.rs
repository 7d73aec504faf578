//! The Mastodon API of a server on loopback, as its writers and the final comparison use it.

use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, RequestExt as _};

use crate::error::TaskError;

/// A client of one server, shared by its accounts.
#[derive(Clone)]
pub(super) struct Api {
    agent: Agent,
    /// Where the server listens.
    address: String,
    /// The name that it answers to.
    host: String,
}

/// An answer, whatever its status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// As it came.
    pub(super) text: String,
    /// Null where the text is no JSON.
    pub(super) json: Value,
}

/// Who asks: a token, or nobody.
pub(super) type Token<'a> = Option<&'a str>;

impl Api {
    /// A client of the server at that address (`127.0.0.1:PORT`), which knows itself as `host`.
    pub(super) fn new(address: &str, host: &str) -> Api {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Servers that end each connection do not say so.
            .max_idle_connections(0)
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .build();
        Api {
            agent: config.into(),
            address: address.to_owned(),
            host: host.to_owned(),
        }
    }

    /// Asks for a path with its query.
    pub(super) fn get(&self, path: &str, token: Token<'_>) -> Result<Answer, TaskError> {
        self.send("GET", path, token, &[], ("", String::new()))
    }

    /// Sends JSON.
    pub(super) fn send_json(
        &self,
        method: &str,
        path: &str,
        token: Token<'_>,
        body: &Value,
    ) -> Result<Answer, TaskError> {
        let body = ("application/json", body.to_string());
        self.send(method, path, token, &[], body)
    }

    /// Sends a body of that media type, with further headers.
    pub(super) fn send<B: AsRef<[u8]>>(
        &self,
        method: &str,
        path: &str,
        token: Token<'_>,
        headers: &[(&str, &str)],
        (media_type, body): (&str, B),
    ) -> Result<Answer, TaskError> {
        let failed =
            |error: &dyn std::fmt::Display| TaskError::message(format!("{method} {path}: {error}"));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("Host", &self.host)
            .header("Accept", "application/json, text/html;q=0.5");
        if !media_type.is_empty() {
            request = request.header("Content-Type", media_type);
        }
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(body.as_ref())
            .map_err(|error| failed(&error))?;
        let request = request.with_agent(&self.agent);
        let mut response = request.run().map_err(|error| failed(&error))?;
        let text = response.body_mut().read_to_string();
        let text = text.map_err(|error| failed(&error))?;
        Ok(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
        })
    }
}

impl Answer {
    /// The answer, if it is a success.
    pub(super) fn success(self, of: &str) -> Result<Answer, TaskError> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let (status, text) = (self.status, &self.text);
        let text = text.get(..300).unwrap_or(text);
        Err(TaskError::message(format!("{of}: status {status}: {text}")))
    }

    /// A text in the answer's JSON.
    pub(super) fn text_of(&self, name: &str) -> Result<String, TaskError> {
        let missing = || TaskError::message(format!("an answer has no `{name}`: {}", self.text));
        let value = &self.json[name];
        let text = value.as_str().map(str::to_owned);
        text.or_else(|| value.as_i64().map(|number| number.to_string()))
            .ok_or_else(missing)
    }

    /// The cookie that the answer sets; empty if it sets none.
    pub(super) fn cookie(&self) -> &str {
        self.header("Set-Cookie").split(';').next().unwrap_or("")
    }

    /// A header, empty if it is not there.
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

/// The media type of a form.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";
const TIMEOUT: Duration = Duration::from_secs(30);
