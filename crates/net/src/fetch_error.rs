//! What keeps a request from its answer.

use std::{error::Error, fmt, io, time::Duration};

use reqwest::header::HeaderMap;
use url::Url;

use crate::{PrivateAddressError, RedirectError, excerpt, location::location};

/// A request without a whole answer.
///
/// It holds nothing of what the request carried. A server may repeat a token in a redirect or
/// a certificate, though: whoever sends one takes it out of the text.
#[derive(thiserror::Error)]
#[error("{location}: {kind}")]
pub struct FetchError {
    /// Where the request went, as [`location`](crate::location) writes it.
    pub location: String,
    /// What was wrong there.
    pub kind: FetchErrorKind,
    /// The headers of the answer, if it began with the status 200 and its body broke.
    pub headers: Option<Box<HeaderMap>>,
}

/// The headers may repeat the token.
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

/// What was wrong with a request. A `cause` is the words of the first cause; it may be empty.
#[derive(Debug, thiserror::Error)]
pub enum FetchErrorKind {
    /// The request was not sent: its authorization could not be made.
    #[error("{0}")]
    Authorization(Box<dyn Error + Send + Sync>),
    /// The host leads only into a private network.
    #[error(transparent)]
    PrivateAddress(#[from] PrivateAddressError),
    /// The host's name has no address.
    #[error(
        "the name {host} cannot be resolved ({cause}); check the address and this machine's network"
    )]
    UnknownName {
        /// The name.
        host: String,
        /// Why.
        cause: String,
    },
    /// The server took no connection.
    #[error("no connection ({0}); check that the server is up and the address is right")]
    NoConnection(String),
    /// The certificate or the handshake was refused.
    #[error(
        "TLS failed ({0}); check that the address is right, that the server's certificate is valid and trusted here, and this machine's clock"
    )]
    Tls(String),
    /// The connection ended inside the TLS handshake.
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
    /// A redirect that is not followed.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// Nothing of the body came for `read_timeout`.
    #[error("the answer stalled")]
    Stalled,
    /// The body was not complete after `total_timeout`.
    #[error("the answer was not complete after {} s", .0.as_secs_f64())]
    Incomplete(Duration),
    /// The body is larger than so many bytes, `max_body_bytes`.
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
    /// What was wrong with a request that brought no answer's head.
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
        // Connecting alone never ends a stream: it ended inside the handshake.
        let ended = is_io(&causes, &[io::ErrorKind::UnexpectedEof]);
        match error.is_connect() {
            true if ended && url.scheme() == "https" => Self::HandshakeEnded,
            true => Self::NoConnection(cause),
            false => Self::NoAnswer(cause),
        }
    }

    /// What was wrong with an answer whose body broke.
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

/// An error and all that it came from. An [`io::Error`] leaves the error it
/// wraps out of its `source`, so it is unwrapped here.
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
