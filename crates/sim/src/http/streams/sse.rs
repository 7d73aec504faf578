//! Server-sent events.

use std::{io, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{
        HeaderMap, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};
use driftline_core::api::Api;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    channel::{Channel, StreamParams},
    feed::{Event, Feed},
};
use crate::http::{
    answers::{add, error, reset},
    refusal::{Refusal, refuse},
    request::bearer,
    sim::Sim,
};

pub(super) async fn open(
    State(sim): State<Arc<Sim>>,
    Path(name): Path<String>,
    Query(params): Query<StreamParams>,
    headers: HeaderMap,
) -> Response {
    let token = params.access_token.as_deref();
    let token = token.unwrap_or_else(|| bearer(&headers)).to_owned();
    if let Some(refusal) = refused(&sim, &token) {
        return refusal;
    }
    let channel = Channel::of(&name.replace('/', ":"), &params)
        .filter(|channel| sim.world(&channel.timeline).is_some());
    let Some(channel) = channel else {
        return refuse(Api::Mastodon, &Refusal::NotFound);
    };
    if channel.is_private() && token.is_empty() {
        return refuse(Api::Mastodon, &Refusal::Unauthorized);
    }
    let mut feed = Feed::new(sim, token);
    feed.subscribe(channel);
    let mut response = Response::new(Body::from_stream(body(feed)));
    let headers = response.headers_mut();
    add(headers, CONTENT_TYPE, "text/event-stream");
    add(headers, CACHE_CONTROL, "private, no-store");
    response
}

/// The answer to a connection that gets no stream at all.
pub(super) fn refused(sim: &Sim, token: &str) -> Option<Response> {
    if sim.faults_config().streams.refused {
        return Some(error(StatusCode::SERVICE_UNAVAILABLE, "Not now"));
    }
    sim.is_revoked(token)
        .then(|| refuse(Api::Mastodon, &Refusal::Unauthorized))
}

/// A connection's state between two pieces of its body.
struct Connection {
    feed: Feed,
    breaks: bool,
    heartbeat_at: Instant,
}

fn body(feed: Feed) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    let connection = Connection {
        heartbeat_at: Instant::now() + feed.heartbeat(),
        feed,
        breaks: false,
    };
    // Mastodon says this first.
    let greeting = stream::iter([Ok(Bytes::from_static(
        b":)
",
    ))]);
    greeting.chain(stream::unfold(connection, |mut connection| async move {
        let piece = connection.piece().await?;
        Some((piece, connection))
    }))
}

impl Connection {
    /// The next events, or the error that breaks the connection after them.
    async fn piece(&mut self) -> Option<io::Result<Bytes>> {
        let mut piece = String::new();
        while piece.is_empty() {
            if self.breaks {
                // What was sent has to leave the socket's buffer first.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                return Some(Err(reset()));
            }
            if self.feed.is_over() {
                return None;
            }
            let due = self.feed.next().await;
            self.breaks = due.breaks;
            piece.extend(due.events.iter().map(text));
            if self.heartbeat_at <= Instant::now() {
                self.heartbeat_at = Instant::now() + self.feed.heartbeat();
                piece += ":thump
";
            }
        }
        Some(Ok(piece.into()))
    }
}

fn text(event: &Event) -> String {
    let lines = event.payload.lines();
    let data: String = lines
        .map(|line| {
            format!(
                "data: {line}
"
            )
        })
        .collect();
    format!(
        "event: {}
{data}
",
        event.name
    )
}
