//! Maps errors to failures.

use driftline_core::answer::{Failure, FailureKind};
use driftline_mastodon::{RawObject, StatusError};
use driftline_net::{FetchError, FetchErrorKind, RedirectError};
use http::StatusCode;

use crate::{excerpt, headers};

/// The failure of a request without a whole answer.
pub(crate) fn of_fetching(error: &FetchError) -> Failure {
    use FetchErrorKind as Is;
    const LATER: &str = "; it is tried again later";
    let (kind, advice) = match &error.kind {
        Is::Authorization(why) => return Failure::new(FailureKind::Unauthorized, why.to_string()),
        Is::PrivateAddress(_) => (
            FailureKind::PrivateAddress,
            "; if you trust it, allow it for the source with --allow-private (`driftline source set NAME --allow-private on` if it is there already), or for every server with upstream.allow_private = true in driftline.toml",
        ),
        Is::Tls(_) | Is::HandshakeEnded => (FailureKind::Tls, ""),
        Is::UnknownName { .. } | Is::NoConnection(_) => (FailureKind::Unreachable, ""),
        Is::NoAnswer(_) => (FailureKind::Unreachable, LATER),
        Is::NothingInTime | Is::NoStreamInTime | Is::Stalled | Is::Incomplete(_) => {
            (FailureKind::TimedOut, LATER)
        }
        Is::Redirect(RedirectError::OtherServer(_)) => (
            FailureKind::Redirected,
            "; if that is where the timeline now is, use that address for the source",
        ),
        Is::Redirect(_) => (FailureKind::Redirected, ""),
        Is::TooLarge(_) => (
            FailureKind::TooLarge,
            "; raise upstream.max_body_bytes if the server is right",
        ),
        Is::Damaged(_) => (FailureKind::NotJson, ""),
        Is::EndedEarly(_) => (FailureKind::Truncated, LATER),
    };
    Failure {
        throttle: error
            .headers
            .as_deref()
            .and_then(|of| headers::throttle(of, headers::now_ms(), MAX_TOOK_MS)),
        ..Failure::new(kind, format!("{error}{advice}"))
    }
}

/// How long ago the headers of an answer whose body broke may have been written, ms.
const MAX_TOOK_MS: i64 = 60_000;

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
    let problem = serde_json::from_slice::<RawObject<'_>>(body).ok();
    let kind = problem.and_then(|problem| problem.text("type"));
    kind.is_some_and(|kind| kind.rsplit('/').next() == Some("usage-capped"))
}

/// The failure of an answer with an item that is no post; `item` says which it is.
pub(crate) fn of_item(error: StatusError, item: &str) -> Failure {
    match error {
        StatusError::Json(_) | StatusError::TooDeep(_) => Failure::new(
            FailureKind::BadJson,
            format!("{item} is not a post ({error})"),
        ),
        StatusError::Id { found } => {
            let found = found.map_or("missing or null".to_owned(), |found| {
                excerpt::words(found.as_bytes())
            });
            Failure::new(
                FailureKind::BadId,
                format!("{item} has no usable ID (it is {found}); IDs are texts or whole numbers"),
            )
        }
    }
}

/// What an error object says, if the JSON is one.
pub(crate) fn said_by_object(json: &[u8]) -> Option<String> {
    let fields: RawObject<'_> = serde_json::from_slice(json).ok()?;
    let names = ["error_description", "error", "errors"];
    let value = names.into_iter().find_map(|name| fields.get(name))?;
    let text = match serde_json::from_str::<String>(value.get()) {
        Ok(text) => excerpt::words(text.as_bytes()),
        Err(_) => excerpt::words(value.get().as_bytes()),
    };
    Some(text)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use driftline_net::PrivateAddressError;
    use http::header::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn each_fetch_error_has_its_kind_and_advice() {
        use FetchErrorKind as Is;
        let (cause, host) = (|| "why".to_owned(), || "a".to_owned());
        let private = PrivateAddressError {
            host: host(),
            address: [10, 0, 0, 1].into(),
        };
        let name = Is::UnknownName {
            host: host(),
            cause: cause(),
        };
        let said = [
            private.into(),
            Is::Tls(cause()),
            Is::HandshakeEnded,
            name,
            Is::NoConnection(cause()),
            Is::NoAnswer(cause()),
            Is::NothingInTime,
            Is::NoStreamInTime,
            Is::Stalled,
            Is::Incomplete(Duration::from_millis(1500)),
            RedirectError::OtherServer("https://b".to_owned()).into(),
            RedirectError::TooMany.into(),
            Is::TooLarge(7),
            Is::Damaged(cause()),
            Is::EndedEarly(cause()),
        ]
        .map(|kind| {
            let failure = of_fetching(&FetchError {
                location: "https://a/x".to_owned(),
                kind,
                headers: None,
            });
            format!("{:?} {}", failure.kind, failure.message)
        });
        assert_eq!(
            said,
            [
                "PrivateAddress https://a/x: a leads to a private address (10.0.0.1), which is not allowed; if you trust it, allow it for the source with --allow-private (`driftline source set NAME --allow-private on` if it is there already), or for every server with upstream.allow_private = true in driftline.toml",
                "Tls https://a/x: TLS failed (why); check that the address is right, that the server's certificate is valid and trusted here, and this machine's clock",
                "Tls https://a/x: the server broke off the TLS handshake; check the address and port",
                "Unreachable https://a/x: the name a cannot be resolved (why); check the address and this machine's network",
                "Unreachable https://a/x: no connection (why); check that the server is up and the address is right",
                "Unreachable https://a/x: the connection brought no answer (why); it is tried again later",
                "TimedOut https://a/x: nothing came in time; it is tried again later",
                "TimedOut https://a/x: no stream in time; it is tried again later",
                "TimedOut https://a/x: the answer stalled; it is tried again later",
                "TimedOut https://a/x: the answer was not complete after 1.5 s; it is tried again later",
                "Redirected https://a/x: it redirects to another server, https://b; if that is where the timeline now is, use that address for the source",
                "Redirected https://a/x: more than 5 redirects",
                "TooLarge https://a/x: the answer is larger than 7 bytes; raise upstream.max_body_bytes if the server is right",
                "NotJson https://a/x: the answer's compression is damaged (why)",
                "Truncated https://a/x: the answer ended early (why); it is tried again later",
            ]
        );
    }

    #[test]
    fn a_broken_body_keeps_the_throttle_of_its_head() {
        let header = |name: &'static str, value: &'static str| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        let headers = HeaderMap::from_iter([
            header("x-ratelimit-limit", "300"),
            header("x-ratelimit-remaining", "7"),
            header("x-ratelimit-reset", "1755464400"),
        ]);
        let failure = of_fetching(&FetchError {
            location: String::new(),
            kind: FetchErrorKind::Stalled,
            headers: Some(Box::new(headers)),
        });
        assert_eq!(failure.throttle.map(|throttle| throttle.remaining), Some(7));
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
}
