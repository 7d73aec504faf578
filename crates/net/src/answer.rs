//! Answers.

use std::fmt;

use reqwest::{
    Response, StatusCode, Upgraded,
    header::{CONTENT_LENGTH, HeaderMap},
};

use crate::{FetchError, FetchErrorKind};

/// An answer of any status, with its body read.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The body after decompression. It may be shortened or empty if the status is not 200.
    pub body: Vec<u8>,
    /// The address of the answer, in the form of [`location`](crate::location).
    pub location: String,
    /// The time at which the last request was sent, by the local clock, in Unix ms.
    pub sent_at_ms: i64,
    /// The time at which the answer was complete, in Unix ms. Equal to `sent_at_ms` if the body was
    /// not read.
    pub received_at_ms: i64,
    /// The time from sending to the answer's head, by a monotonic clock, in ms.
    pub round_trip_ms: i64,
}

/// Omits the text from the server, which may repeat the token.
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
    /// An answer with the expected status, whose body has not been read.
    Stream(OpenAnswer),
    /// An answer with another status.
    Refused(Answer),
}

/// An answer whose body has not been read.
pub struct OpenAnswer {
    pub(crate) response: Response,
    /// The location of the first request, before redirects.
    pub(crate) location: String,
}

/// Omits the headers, which may repeat the token.
impl fmt::Debug for OpenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAnswer")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl OpenAnswer {
    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Reads the next bytes of the body; `None` at its end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`FetchError`] if the body breaks off.
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]>>, FetchError> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| {
            FetchError::at(self.location.clone(), FetchErrorKind::of_reading(&error))
        })
    }

    /// Returns the connection itself, after `101 Switching Protocols`.
    ///
    /// # Errors
    /// [`FetchError`] if the connection cannot be taken over.
    pub async fn upgrade(self) -> Result<Upgraded, FetchError> {
        let upgraded = self.response.upgrade().await;
        upgraded.map_err(|error| FetchError::at(self.location, FetchErrorKind::of_reading(&error)))
    }
}

/// Reads the body of a `200` chunk by chunk after decompression, so that memory holds at most the
/// cap and one chunk.
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

/// The announced size. `None` for a compressed body, because reqwest removes the header.
pub(crate) fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
