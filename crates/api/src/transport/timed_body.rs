//! Request bodies that end in time.

use std::{io, time::Duration};

use axum::body::{Body, HttpBody};
use futures_util::{StreamExt as _, stream};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

/// The body of a request, which fails if nothing of it comes for as long as `silence`, or if it is not whole after
/// `total`.
pub(super) fn timed_body(body: Incoming, silence: Duration, total: Duration) -> Body {
    if body.is_end_stream() {
        return Body::empty();
    }
    let end = Instant::now() + total;
    let chunks = Body::new(body).into_data_stream();
    Body::from_stream(stream::unfold(Some(chunks), move |chunks| async move {
        let mut chunks = chunks?;
        let until = end.min(Instant::now() + silence);
        match timeout_at(until, chunks.next()).await {
            Ok(chunk) => chunk.map(|chunk| (chunk.map_err(io::Error::other), Some(chunks))),
            Err(_) => {
                let late = io::Error::new(io::ErrorKind::TimedOut, "the body took too long");
                Some((Err(late), None))
            }
        }
    }))
}
