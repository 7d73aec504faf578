//! Server-sent events.

use std::{io, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{
        HeaderMap,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use driftline_core::api::Api;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    channel::StreamParams,
    feed::{Event, Feed},
};
use crate::http::{answers::reset, refusal::refuse, request::bearer, sim::Sim};

pub(super) async fn open(
    State(sim): State<Arc<Sim>>,
    Path(name): Path<String>,
    Query(params): Query<StreamParams>,
    headers: HeaderMap,
) -> Response {
    let token = params.access_token.as_deref();
    let token = token.unwrap_or_else(|| bearer(&headers)).to_owned();
    let feed = match Feed::open(sim, token, &name.replace('/', ":"), &params) {
        Ok(feed) => feed,
        Err(refusal) => return refuse(Api::Mastodon, &refusal),
    };
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "private, no-store"),
    ];
    (headers, Body::from_stream(body(feed))).into_response()
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
