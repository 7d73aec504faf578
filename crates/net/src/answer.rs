//! Answers.

use std::fmt;

use reqwest::{
    Response, StatusCode, Upgraded,
    header::{CONTENT_LENGTH, HeaderMap},
};

use crate::{FetchError, FetchErrorKind};

/// An answer of any status, its body read.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body after decompression. Of a status other than 200 it may be
    /// shortened, or left out.
    pub body: Vec<u8>,
    /// Where it came from, as [`location`](crate::location) writes it.
    pub location: String,
    /// When the last request was sent, by the local clock, Unix ms.
    pub sent_at_ms: i64,
    /// When the answer was complete: `sent_at_ms`, if its body was left out.
    pub received_at_ms: i64,
    /// From sending to the answer's head, by a monotonic clock, ms.
    pub round_trip_ms: i64,
}

/// What the server sent may repeat the token.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

/// An answer to a request for a stream.
#[derive(Debug)]
pub enum Opened {
    /// Of the status that was expected; its body is still to come.
    Stream(OpenAnswer),
    /// Of any other.
    Refused(Answer),
}

/// An answer whose body is still to come.
pub struct OpenAnswer {
    pub(crate) response: Response,
    /// Of the first request, whatever redirects came after it.
    pub(crate) location: String,
}

/// The headers may repeat the token.
impl fmt::Debug for OpenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAnswer")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl OpenAnswer {
    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next bytes of the body; `None` at its end. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// A [`FetchError`] if the body breaks off.
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]>>, FetchError> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| {
            FetchError::at(self.location.clone(), FetchErrorKind::of_reading(&error))
        })
    }

    /// The connection itself, after `101 Switching Protocols`.
    ///
    /// # Errors
    /// A [`FetchError`] if the connection is not handed over.
    pub async fn upgrade(self) -> Result<Upgraded, FetchError> {
        let upgraded = self.response.upgrade().await;
        upgraded.map_err(|error| FetchError::at(self.location, FetchErrorKind::of_reading(&error)))
    }
}

/// Reads the body of a `200` chunk by chunk after decompression, so that no more than the
/// cap and one chunk is ever held.
pub(crate) async fn body(
    response: &mut Response,
    announced: Option<usize>,
    cap: usize,
) -> Result<Vec<u8>, FetchErrorKind> {
    if announced.is_some_and(|bytes| bytes > cap) {
        return Err(FetchErrorKind::TooLarge(cap));
    }
    let mut body = Vec::with_capacity(announced.unwrap_or(0));
    let broken = |error| FetchErrorKind::of_reading(&error);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if chunk.len() > cap - body.len() {
            return Err(FetchErrorKind::TooLarge(cap));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The announced size; a compressed body announces none, because reqwest
/// takes the header away.
pub(crate) fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
