//! Answers' bodies before they are read: what is no JSON, or an error.

use driftline_core::answer::{Failure, FailureKind};
use driftline_mastodon::RawObject;
use serde::de::IgnoredAny;

use crate::{excerpt, failure};

/// The JSON in a body that may hold some.
pub(crate) fn json(body: &[u8]) -> Result<&[u8], Failure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = body.trim_ascii();
    match body.first() {
        None => Err(Failure::new(
            FailureKind::Truncated,
            "the answer's body is empty",
        )),
        Some(b'<') => Err(Failure::new(
            FailureKind::NotJson,
            format!(
                "the answer is an HTML page (“{}”), not JSON; check that the address is that of the server's API and that no proxy answers in its place",
                excerpt::html_words(body)
            ),
        )),
        Some(_) => Ok(body),
    }
}

/// The members of a body that is to be an object.
pub(crate) fn object(body: &[u8]) -> Result<RawObject<'_>, Failure> {
    let body = json(body)?;
    if !body.starts_with(b"{") {
        return Err(not_what_was_asked(body, "an object"));
    }
    serde_json::from_slice(body).map_err(|error| unreadable(body, &error))
}

/// The failure of a body that does not begin as what was asked for does.
pub(crate) fn not_what_was_asked(body: &[u8], asked: &str) -> Failure {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        if error.is_eof() || body.starts_with(b"{") || body.starts_with(b"[") {
            return unreadable(body, &error);
        }
        return Failure::new(
            FailureKind::NotJson,
            format!("the answer is not JSON (“{}”)", excerpt::words(body)),
        );
    }
    match failure::said_by_object(body) {
        Some(said) => error_object(&said),
        None => Failure::new(
            FailureKind::BadJson,
            format!(
                "the answer is JSON but not {asked} (“{}”)",
                excerpt::words(body)
            ),
        ),
    }
}

/// The failure of a 200 whose body is an error object that says this.
pub(crate) fn error_object(said: &str) -> Failure {
    Failure::new(
        FailureKind::ErrorBody,
        format!("the answer is an error although its status is 200: “{said}”"),
    )
}

/// The failure of a body that the JSON reader stopped at.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> Failure {
    // serde_json calls a number invalid that is cut at its point or exponent.
    let cut_number =
        body.last().is_some_and(|last| b".eE+-".contains(last)) && is_at_end(body, error);
    if error.is_eof() || cut_number {
        Failure::new(
            FailureKind::Truncated,
            format!("the answer's JSON ends early ({error})"),
        )
    } else {
        Failure::new(
            FailureKind::BadJson,
            format!("the answer's JSON cannot be read ({error})"),
        )
    }
}

fn is_at_end(body: &[u8], error: &serde_json::Error) -> bool {
    let mut lines = body.split(|&b| b == b'\n');
    let last = lines.next_back().unwrap_or_default();
    error.line() == lines.count() + 1 && error.column() >= last.len()
}
