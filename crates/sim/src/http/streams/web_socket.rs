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
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{
    channel::{Channel, Named},
    feed::{Event, Feed, Next},
    sse::refused,
};
use crate::http::{
    authorization::bearer,
    refusal::{Refusal, refuse},
    sim::Sim,
};

/// The token comes in the query, in a bearer header, or, as browsers send it,
/// as the protocol.
pub(super) async fn upgrade(
    State(sim): State<Arc<Sim>>,
    Query(named): Query<Named>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let protocol = headers
        .get(SEC_WEBSOCKET_PROTOCOL)
        .and_then(|value| value.to_str().ok());
    let token = match (named.access_token.as_deref(), bearer(&headers)) {
        (Some(token), _) => token,
        (None, "") => protocol.unwrap_or(""),
        (None, token) => token,
    };
    if let Some(refusal) = refused(&sim, token) {
        return refusal;
    }
    if token.is_empty() {
        return refuse(Api::Mastodon, &Refusal::Unauthorized);
    }
    let token = token.to_owned();
    let upgrade = match protocol {
        Some(protocol) => upgrade.protocols([protocol.to_owned()]),
        None => upgrade,
    };
    upgrade.on_upgrade(async move |socket| {
        let feed = Feed::new(Arc::clone(&sim), token);
        Connection { sim, feed, socket }.serve(named).await;
    })
}

struct Connection {
    sim: Arc<Sim>,
    feed: Feed,
    socket: WebSocket,
}

/// What a client says.
#[derive(Debug, Deserialize)]
struct FillRequest {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    named: Named,
}

impl Connection {
    /// Until either side is gone; the socket then closes without a word, as
    /// broken connections do.
    async fn serve(mut self, named: Named) {
        if named.stream.is_some() && self.subscribe(&named).await.is_err() {
            return;
        }
        let mut heartbeat_at = Instant::now() + self.feed.heartbeat();
        while !self.feed.is_over() {
            tokio::select! {
                biased;
                said = self.socket.recv() => match said {
                    Some(Ok(Message::Text(text))) => {
                        if self.hear(&text).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
                next = self.feed.next() => {
                    let (events, breaks) = match next {
                        Next::Events(events) => (events, false),
                        Next::Break(events) => (events, true),
                    };
                    for event in &events {
                        if self.say(text(event)).await.is_err() {
                            return;
                        }
                    }
                    if breaks {
                        return;
                    }
                }
            }
            if heartbeat_at <= Instant::now() {
                heartbeat_at = Instant::now() + self.feed.heartbeat();
                if self
                    .socket
                    .send(Message::Ping(Vec::new().into()))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    }

    async fn hear(&mut self, text: &str) -> Result<(), axum::Error> {
        match serde_json::from_str::<FillRequest>(text) {
            Ok(fill_request) if fill_request.kind == "subscribe" => {
                self.subscribe(&fill_request.named).await
            }
            Ok(fill_request) if fill_request.kind == "unsubscribe" => {
                if let Some(channel) = self.channel(&fill_request.named) {
                    self.feed.unsubscribe(&channel);
                }
                Ok(())
            }
            _ => self.complain("Unknown message").await,
        }
    }

    async fn subscribe(&mut self, named: &Named) -> Result<(), axum::Error> {
        match self.channel(named) {
            Some(channel) => {
                self.feed.subscribe(channel);
                Ok(())
            }
            None => self.complain("Unknown channel requested").await,
        }
    }

    fn channel(&self, named: &Named) -> Option<Channel> {
        let stream = named.stream.as_deref()?;
        let channel = Channel::of(stream, named)?;
        self.sim.world(&channel.timeline).map(|_| channel)
    }

    async fn complain(&mut self, message: &str) -> Result<(), axum::Error> {
        self.say(json!({ "error": message, "status": 400 }).to_string())
            .await
    }

    async fn say(&mut self, text: String) -> Result<(), axum::Error> {
        self.socket.send(Message::Text(text.into())).await
    }
}

fn text(event: &Event) -> String {
    json!({
        "stream": event.channel,
        "event": event.name,
        "payload": event.payload,
    })
    .to_string()
}
