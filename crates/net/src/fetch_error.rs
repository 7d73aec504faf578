//! The errors of requests.

use std::{error::Error, fmt, io, time::Duration};

use reqwest::header::HeaderMap;
use url::Url;

use crate::{PrivateAddressError, RedirectError, excerpt, location::location};

/// A request without a complete answer.
///
/// It contains no data of the request. A server may repeat a token in a redirect or a certificate,
/// so a caller that sends a token must remove it from the text.
#[derive(thiserror::Error)]
#[error("{location}: {kind}")]
pub struct FetchError {
    /// The address of the request, in the form of [`location`](crate::location).
    pub location: String,
    /// The kind of error.
    pub kind: FetchErrorKind,
    /// The headers of the answer, if its status was 200 and its body broke off.
    pub headers: Option<Box<HeaderMap>>,
}

/// Omits the headers, which may repeat the token.
impl fmt::Debug for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchError")
            .field("location", &self.location)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl FetchError {
    pub(crate) fn new(url: &Url, kind: impl Into<FetchErrorKind>) -> Self {
        Self::at(location(url), kind)
    }

    pub(crate) fn at(location: String, kind: impl Into<FetchErrorKind>) -> Self {
        Self {
            location,
            kind: kind.into(),
            headers: None,
        }
    }
}

/// The kind of error of a request. A `cause` is the text of the first cause, and may be empty.
#[derive(Debug, thiserror::Error)]
pub enum FetchErrorKind {
    /// The request was not sent, because its authorization could not be made.
    #[error("{0}")]
    Authorization(Box<dyn Error + Send + Sync>),
    /// The host has only private addresses.
    #[error(transparent)]
    PrivateAddress(#[from] PrivateAddressError),
    /// The host's name has no address.
    #[error(
        "the name {host} cannot be resolved ({cause}); check the address and this machine's network"
    )]
    UnknownName {
        /// The name.
        host: String,
        /// The reason.
        cause: String,
    },
    /// The server did not accept a connection.
    #[error("no connection ({0}); check that the server is up and the address is right")]
    NoConnection(String),
    /// The certificate or the handshake was rejected.
    #[error(
        "TLS failed ({0}); check that the address is right, that the server's certificate is valid and trusted here, and this machine's clock"
    )]
    Tls(String),
    /// The connection ended during the TLS handshake.
    #[error("the server broke off the TLS handshake; check the address and port")]
    HandshakeEnded,
    /// The connection broke before an answer began.
    #[error("the connection brought no answer ({0})")]
    NoAnswer(String),
    /// No answer began within a time limit of the options.
    #[error("nothing came in time")]
    NothingInTime,
    /// The expected answer did not begin within `read_timeout`.
    #[error("no stream in time")]
    NoStreamInTime,
    /// A redirect was not followed.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// No byte of the body arrived for `read_timeout`.
    #[error("the answer stalled")]
    Stalled,
    /// The body was not complete after `total_timeout`.
    #[error("the answer was not complete after {} s", .0.as_secs_f64())]
    Incomplete(Duration),
    /// The body has more bytes than `max_body_bytes`.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The body's compression is damaged.
    #[error("the answer's compression is damaged ({0})")]
    Damaged(String),
    /// The body broke off.
    #[error("the answer ended early ({0})")]
    EndedEarly(String),
}

impl FetchErrorKind {
    /// The error of a request that received no head of an answer.
    pub(crate) fn of_sending(url: &Url, error: &reqwest::Error) -> Self {
        let causes = causes(error);
        if let Some(private) = find::<PrivateAddressError>(&causes) {
            return Self::PrivateAddress(private.clone());
        }
        let cause = deepest(&causes);
        if find::<rustls::Error>(&causes).is_some() {
            return Self::Tls(cause);
        }
        if error.is_timeout() {
            return Self::NothingInTime;
        }
        if error.is_dns() {
            let host = url.host_str().unwrap_or_default().to_owned();
            return Self::UnknownName { host, cause };
        }
        // A mere connection never ends a stream, so the handshake was interrupted.
        let ended = is_io(&causes, &[io::ErrorKind::UnexpectedEof]);
        match error.is_connect() {
            true if ended && url.scheme() == "https" => Self::HandshakeEnded,
            true => Self::NoConnection(cause),
            false => Self::NoAnswer(cause),
        }
    }

    /// The error of an answer whose body broke off.
    pub(crate) fn of_reading(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Stalled;
        }
        let causes = causes(error);
        let cause = deepest(&causes);
        let corrupt = [io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];
        if is_io(&causes, &corrupt) {
            Self::Damaged(cause)
        } else {
            Self::EndedEarly(cause)
        }
    }
}

/// An error and all its causes. An [`io::Error`] omits the error that it wraps from its `source`,
/// so it is unwrapped here.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| source(error)).collect()
}

fn source<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().map(io::Error::get_ref) {
        Some(Some(inner)) => Some(inner),
        _ => error.source(),
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

/// The text of the first cause. The errors above it repeat it and may contain a URL with its query.
fn deepest(causes: &[&(dyn Error + 'static)]) -> String {
    causes
        .last()
        .filter(|error| !error.is::<reqwest::Error>())
        .map_or_else(String::new, |error| {
            excerpt::words(error.to_string().as_bytes())
        })
}
