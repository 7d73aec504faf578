//! WebSockets.

use std::sync::Arc;

use axum::{
    extract::{
        Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, header::SEC_WEBSOCKET_PROTOCOL},
    response::Response,
};
use driftline_core::api::Api;
use serde_json::json;
use tokio::time::Instant;

use super::{
    channel::StreamParams,
    feed::{Event, Feed},
};
use crate::http::{
    refusal::{Refusal, refuse},
    request::bearer,
    sim::Sim,
};

/// The token comes in the query, in a bearer header, or, as browsers send it,
/// as the protocol. What clients say is not heard.
pub(super) async fn upgrade(
    State(sim): State<Arc<Sim>>,
    Query(params): Query<StreamParams>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let protocol = headers
        .get(SEC_WEBSOCKET_PROTOCOL)
        .and_then(|value| value.to_str().ok());
    let token = match (params.access_token.as_deref(), bearer(&headers)) {
        (Some(token), _) => token,
        (None, "") => protocol.unwrap_or(""),
        (None, token) => token,
    };
    if token.is_empty() {
        return refuse(Api::Mastodon, &Refusal::Unauthorized);
    }
    let stream = params.stream.as_deref().unwrap_or("");
    let feed = match Feed::open(sim, token.to_owned(), stream, &params) {
        Ok(feed) => feed,
        Err(refusal) => return refuse(Api::Mastodon, &refusal),
    };
    let upgrade = match protocol {
        Some(protocol) => upgrade.protocols([protocol.to_owned()]),
        None => upgrade,
    };
    upgrade.on_upgrade(async move |socket| {
        // An error is the end of the connection, as a client's leaving is.
        let _ended = serve(feed, socket).await;
    })
}

/// Until either side is gone; the socket then closes without a word, as
/// broken connections do.
async fn serve(mut feed: Feed, mut socket: WebSocket) -> Result<(), axum::Error> {
    let mut heartbeat_at = Instant::now() + feed.heartbeat();
    while !feed.is_over() {
        tokio::select! {
            biased;
            said = socket.recv() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => {}
            },
            due = feed.next() => {
                for event in &due.events {
                    socket.send(Message::Text(text(event).into())).await?;
                }
                if due.breaks {
                    return Ok(());
                }
            }
        }
        if heartbeat_at <= Instant::now() {
            heartbeat_at = Instant::now() + feed.heartbeat();
            socket.send(Message::Ping(Vec::new().into())).await?;
        }
    }
    Ok(())
}

fn text(event: &Event) -> String {
    json!({
        "stream": event.channel,
        "event": event.name,
        "payload": event.payload,
    })
    .to_string()
}
