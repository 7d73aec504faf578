//! Server-sent events.

use std::{collections::VecDeque, fmt::Write, io, sync::Arc};

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
use futures_util::stream;
use tokio::time::Instant;

use super::{
    channel::{Channel, StreamParams},
    feed::{Event, Feed},
};
use crate::http::{
    answers::{add, error},
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
    ready: VecDeque<io::Result<Bytes>>,
    breaks: bool,
    heartbeat_at: Instant,
}

fn body(feed: Feed) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    let connection = Connection {
        heartbeat_at: Instant::now() + feed.heartbeat(),
        feed,
        // Mastodon says this first.
        ready: VecDeque::from([Ok(Bytes::from_static(b":)\n"))]),
        breaks: false,
    };
    stream::unfold(connection, |mut connection| async move {
        let piece = connection.piece().await?;
        Some((piece, connection))
    })
}

impl Connection {
    async fn piece(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.breaks {
                // What was sent has to leave the socket's buffer first.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                self.breaks = false;
                return Some(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
            }
            if self.feed.is_over() {
                return None;
            }
            let due = self.feed.next().await;
            self.breaks = due.breaks;
            self.ready
                .extend(due.events.iter().map(|event| Ok(text(event))));
            if self.heartbeat_at <= Instant::now() {
                self.heartbeat_at = Instant::now() + self.feed.heartbeat();
                self.ready.push_back(Ok(Bytes::from_static(b":thump\n")));
            }
        }
    }
}

fn text(event: &Event) -> Bytes {
    let mut text = format!("event: {}\n", event.name);
    for line in event.payload.lines() {
        let _ = writeln!(text, "data: {line}");
    }
    text.push('\n');
    text.into()
}
