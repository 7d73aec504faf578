//! Maps errors to failures.

use std::{borrow::Cow, error::Error, io};

use driftline_core::answer::{Failure, FailureKind};
use driftline_mastodon::RawObject;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use crate::{excerpt, guard::PrivateAddressError};

/// Where a request went, for messages: no query, no token.
pub(crate) fn location(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The failure of a request that brought no answer's head.
pub(crate) fn of_sending(url: &Url, error: &reqwest::Error) -> Failure {
    let location = location(url);
    let causes = causes(error);
    if let Some(private) = find::<PrivateAddressError>(&causes) {
        return Failure::new(
            FailureKind::PrivateAddress,
            format!("{location}: {private}"),
        );
    }
    let cause = deepest(&causes);
    if find::<rustls::Error>(&causes).is_some() {
        return Failure::new(
            FailureKind::Tls,
            format!(
                "{location}: TLS failed ({cause}); check that the address is right, that the server's certificate is valid and trusted here, and this machine's clock"
            ),
        );
    }
    if error.is_timeout() {
        return Failure::new(
            FailureKind::TimedOut,
            format!("{location}: nothing came in time; it is tried again later"),
        );
    }
    if error.is_dns() {
        return Failure::new(
            FailureKind::Unreachable,
            format!(
                "{location}: the name {} cannot be resolved ({cause}); check the address and this machine's network",
                url.host_str().unwrap_or_default()
            ),
        );
    }
    // Connecting alone never ends a stream: it ended inside the handshake.
    let ended = is_io(&causes, &[io::ErrorKind::UnexpectedEof]);
    if error.is_connect() && ended && url.scheme() == "https" {
        return Failure::new(
            FailureKind::Tls,
            format!(
                "{location}: the server broke off the TLS handshake; check the address and port"
            ),
        );
    }
    if error.is_connect() {
        return Failure::new(
            FailureKind::Unreachable,
            format!(
                "{location}: no connection ({cause}); check that the server is up and the address is right"
            ),
        );
    }
    Failure::new(
        FailureKind::Unreachable,
        format!("{location}: the connection brought no answer ({cause}); it is tried again later"),
    )
}

/// The failure of an answer whose body broke.
pub(crate) fn of_reading(location: &str, error: &reqwest::Error) -> Failure {
    let causes = causes(error);
    if error.is_timeout() {
        return Failure::new(
            FailureKind::TimedOut,
            format!("{location}: the answer stalled; it is tried again later"),
        );
    }
    let cause = deepest(&causes);
    let corrupt = is_io(
        &causes,
        &[io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput],
    );
    if corrupt {
        return Failure::new(
            FailureKind::NotJson,
            format!("{location}: the answer's compression is damaged ({cause})"),
        );
    }
    Failure::new(
        FailureKind::Truncated,
        format!("{location}: the answer ended early ({cause}); it is tried again later"),
    )
}

/// The failure of an answer whose body is larger than the cap.
pub(crate) fn too_large(location: &str, max_body_bytes: usize) -> Failure {
    Failure::new(
        FailureKind::TooLarge,
        format!(
            "{location}: the answer is larger than {max_body_bytes} bytes; raise upstream.max_body_bytes if the server is right"
        ),
    )
}

/// The failure that a status other than 200 means.
pub(crate) fn of_status(location: &str, status: StatusCode, body: &[u8]) -> Failure {
    let said = said(body);
    let (kind, what, todo) = match status.as_u16() {
        403 | 429 if is_usage_cap(body) => (
            FailureKind::Capped,
            "the posts that the server gives out in a month are used up",
            "; it is tried again in an hour: `driftline credential add --monthly-posts` spreads them over the month",
        ),
        401 | 403 => (
            FailureKind::Unauthorized,
            "the server refuses this request",
            "; give it a token that may read this",
        ),
        404 | 410 => (
            FailureKind::NotFound,
            "the server has no such thing",
            "; check the address, the timeline's name, and that the token may see it",
        ),
        400 | 413 | 414 | 422 => (
            FailureKind::Refused,
            "the server takes this request for wrong",
            "",
        ),
        429 => (
            FailureKind::Throttled,
            "too many requests",
            "; it is tried again when the throttle resets",
        ),
        206 => (
            FailureKind::UnexpectedStatus,
            "the server is still building this timeline",
            "; it is tried again later",
        ),
        500..=599 => (
            FailureKind::ServerError,
            "the server failed",
            "; it is tried again later",
        ),
        _ => (
            FailureKind::UnexpectedStatus,
            "the status is unexpected",
            "",
        ),
    };
    let reason = status.canonical_reason().unwrap_or("unnamed");
    let said = if said.is_empty() {
        said
    } else {
        format!(": “{said}”")
    };
    Failure::new(
        kind,
        format!(
            "{location}: {what} ({} {reason}{said}){todo}",
            status.as_u16()
        ),
    )
}

/// Whether X says that the cap on posts of a plan is used up: problem details (RFC 9457) of the
/// type `usage-capped`.
fn is_usage_cap(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Problem<'j> {
        #[serde(borrow, rename = "type")]
        kind: Option<Cow<'j, str>>,
    }
    let problem = serde_json::from_slice::<Problem<'_>>(body).ok();
    let kind = problem.and_then(|problem| problem.kind);
    kind.is_some_and(|kind| kind.rsplit('/').next() == Some("usage-capped"))
}

/// What an error object says, if the JSON is one.
pub(crate) fn said_by_object(json: &[u8]) -> Option<String> {
    let fields: ErrorFields<'_> = serde_json::from_slice(json).ok()?;
    let value = fields
        .error_description
        .or(fields.error)
        .or(fields.errors)?;
    let text = match serde_json::from_str::<String>(value.get()) {
        Ok(text) => excerpt::words(text.as_bytes()),
        Err(_) => excerpt::words(value.get().as_bytes()),
    };
    Some(text)
}

#[derive(Deserialize)]
struct ErrorFields<'j> {
    #[serde(borrow)]
    error: Option<&'j RawValue>,
    #[serde(borrow)]
    error_description: Option<&'j RawValue>,
    #[serde(borrow)]
    errors: Option<&'j RawValue>,
}

/// What a problem document says (RFC 9457; X writes its own so). Any object
/// may have these members, so only those of failed requests are read for them.
fn said_by_problem(json: &[u8]) -> Option<String> {
    let fields: RawObject<'_> = serde_json::from_slice(json).ok()?;
    let text = fields.some_text("detail").or(fields.some_text("title"))?;
    Some(excerpt::words(text.as_bytes()))
}

fn said(body: &[u8]) -> String {
    let body = body.trim_ascii();
    match body.first() {
        Some(b'{') => said_by_object(body)
            .or_else(|| said_by_problem(body))
            .unwrap_or_default(),
        Some(b'<') => excerpt::html_words(body),
        _ => excerpt::words(body),
    }
}

/// An error and all that it came from. An [`io::Error`] leaves the error it
/// wraps out of its `source`, so it is unwrapped here.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e (dyn Error + 'static)> {
    let mut causes = vec![error];
    let mut next = source(error);
    while let Some(error) = next {
        causes.push(error);
        next = source(error);
    }
    causes
}

fn source<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn find<'e, E: Error + 'static>(causes: &[&'e (dyn Error + 'static)]) -> Option<&'e E> {
    causes.iter().find_map(|error| error.downcast_ref())
}

fn is_io(causes: &[&(dyn Error + 'static)], kinds: &[io::ErrorKind]) -> bool {
    causes
        .iter()
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| kinds.contains(&error.kind()))
}

/// The text of the first cause; those above it repeat it and may hold a URL
/// with its query.
fn deepest(causes: &[&(dyn Error + 'static)]) -> String {
    causes
        .last()
        .filter(|error| !error.is::<reqwest::Error>())
        .map_or_else(String::new, |error| {
            excerpt::words(error.to_string().as_bytes())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_kind() {
        for (status, kind) in [
            (202, FailureKind::UnexpectedStatus),
            (206, FailureKind::UnexpectedStatus),
            (304, FailureKind::UnexpectedStatus),
            (400, FailureKind::Refused),
            (401, FailureKind::Unauthorized),
            (403, FailureKind::Unauthorized),
            (404, FailureKind::NotFound),
            (410, FailureKind::NotFound),
            (422, FailureKind::Refused),
            (429, FailureKind::Throttled),
            (500, FailureKind::ServerError),
            (503, FailureKind::ServerError),
            (530, FailureKind::ServerError),
            (599, FailureKind::ServerError),
            (600, FailureKind::UnexpectedStatus),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(of_status("x", status, b"").kind, kind, "{status}");
        }
    }

    #[test]
    fn a_used_up_plan_differs_from_a_full_window() {
        let body =
            br#"{"title":"UsageCapExceeded","detail":"Usage cap exceeded: Monthly product cap",
            "type":"https://api.twitter.com/2/problems/usage-capped"}"#;
        for status in [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS] {
            let capped = of_status("x", status, body);
            assert_eq!(capped.kind, FailureKind::Capped);
            assert!(capped.message.contains("Monthly product cap"), "{capped}");
            let other = br#"{"title":"Too Many Requests","type":"about:blank"}"#;
            assert_ne!(of_status("x", status, other).kind, FailureKind::Capped);
        }
        assert_eq!(
            of_status("x", StatusCode::BAD_REQUEST, body).kind,
            FailureKind::Refused
        );
    }

    #[test]
    fn the_message_says_what_the_server_said() {
        let message = |body: &[u8]| of_status("x", StatusCode::FORBIDDEN, body).message;
        assert_eq!(
            message(b"{\"error\":\"outside\\nscopes\"}"),
            "x: the server refuses this request (403 Forbidden: “outside scopes”); give it a token that may read this"
        );
        assert!(message(b"<title>Just a moment</title>").contains("“Just a moment”"));
        assert!(message(b"plain").contains("“plain”"));
        assert!(message(b"").contains("(403 Forbidden)"));
        assert!(
            message(b"{\"title\":\"t\",\"detail\":\"Usage cap exceeded\"}")
                .contains("“Usage cap exceeded”")
        );
        assert!(message(b"{\"errors\":[{\"code\":88}]}").contains("[{\"code\":88}]"));
    }

    #[test]
    fn the_location_holds_neither_query_nor_user() {
        let url = Url::parse("https://me:pw@a.example:8443/api?access_token=x#y").expect("a URL");
        assert_eq!(location(&url), "https://a.example:8443/api");
    }
}
