//! The fault of a source, in words.

use std::borrow::Cow;

use driftline_core::{answer::FailureKind, timeline::LastError};
use driftline_runtime::{Weight, show_ms};
use serde::{Deserialize, Serialize};

/// The fault of a source. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFault {
    /// The upstream's failure as reports name it; `client` if the source has no usable token or
    /// address, `store` if the store fails, `stored` if stored data or data to store is wrong, `bug` if
    /// this program panicked, `stalled` if its session does not go on.
    pub kind: Cow<'static, str>,
    /// The fault in a few words.
    pub summary: String,
    /// The fault, its place and the remedy.
    pub message: String,
    /// Since when, Unix ms.
    pub since_ms: Option<i64>,
    /// How many requests have failed in a row, or tries to read the source.
    pub count: u32,
}

impl SourceFault {
    /// The kind of an outage of the whole store.
    pub(crate) const STORE: &'static str = "store";

    /// The current error of a machine.
    pub fn of_error(error: &LastError) -> Self {
        let asked = error.retry_after_ms.map(|ms| {
            let wait = show_ms(ms);
            format!("; the server asked to wait {wait}")
        });
        Self {
            kind: error.kind.name().into(),
            summary: summary(error.kind).to_owned(),
            message: format!("{}{}", error.message, asked.unwrap_or_default()),
            since_ms: Some(error.since_ms),
            count: error.count,
        }
    }

    /// Whether another fault is the same failure of the same row.
    pub(super) fn is_same_failure(&self, other: &Self) -> bool {
        (self.since_ms, self.count) == (other.since_ms, other.count)
    }

    /// A fault that the error describes.
    pub(crate) fn new(kind: &'static str, error: &impl ToString) -> Self {
        let message = error.to_string();
        Self {
            kind: kind.into(),
            summary: message.clone(),
            message,
            since_ms: None,
            count: 1,
        }
    }
}

/// Whether a failure may be over with the next request. Where the server asks to wait, the next request
/// is not sent soon.
pub(super) const fn weight(error: &LastError) -> Weight {
    match error.kind {
        _ if error.retry_after_ms.is_some() => Weight::Lasting,
        FailureKind::Tls
        | FailureKind::PrivateAddress
        | FailureKind::Redirected
        | FailureKind::Unauthorized
        | FailureKind::Forbidden
        | FailureKind::NotFound
        | FailureKind::TooLarge => Weight::Lasting,
        _ => Weight::Passing,
    }
}

const fn summary(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Unreachable => "the server cannot be reached",
        FailureKind::TimedOut => "no answer in time",
        FailureKind::Tls => "TLS failed; check the address, the certificate and the clock",
        FailureKind::PrivateAddress => {
            "address is private; `source set --allow-private on` allows it"
        }
        FailureKind::Redirected => "redirected; add the source with its new address",
        FailureKind::Unauthorized | FailureKind::Forbidden => {
            "refused; give it a token that may read this"
        }
        FailureKind::NotFound => "no such timeline; check address, name and token",
        FailureKind::Throttled => "too many requests; goes on when the throttle resets",
        FailureKind::Capped => "the month's posts are used up; tried again each hour",
        FailureKind::ServerError => "the server fails",
        FailureKind::Refused => "the server rejects the request",
        FailureKind::UnexpectedStatus => "the answer's status is unexpected",
        FailureKind::NotJson | FailureKind::BadJson => {
            "the answer is not a timeline; check the address"
        }
        FailureKind::ErrorBody => "the answer is an error",
        FailureKind::Truncated => "the answer ended early",
        FailureKind::TooLarge => "the answer is too large; raise upstream.max_body_bytes",
        FailureKind::BadId => "a post without a usable ID",
        FailureKind::WrongOrder => "posts are out of order",
    }
}
