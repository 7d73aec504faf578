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
    channel::{Channel, StreamParams},
    feed::{Event, Feed},
    sse::refused,
};
use crate::http::{
    refusal::{Refusal, refuse},
    request::bearer,
    sim::Sim,
};

/// The token comes in the query, in a bearer header, or, as browsers send it,
/// as the protocol.
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
        // An error is the end of the connection, as a client's leaving is.
        let _ended = Connection { sim, feed, socket }.serve(params).await;
    })
}

struct Connection {
    sim: Arc<Sim>,
    feed: Feed,
    socket: WebSocket,
}

/// What a client says.
#[derive(Debug, Deserialize)]
struct ClientMessage {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    params: StreamParams,
}

impl Connection {
    /// Until either side is gone; the socket then closes without a word, as
    /// broken connections do.
    async fn serve(mut self, params: StreamParams) -> Result<(), axum::Error> {
        if params.stream.is_some() {
            self.subscribe(&params).await?;
        }
        let mut heartbeat_at = Instant::now() + self.feed.heartbeat();
        while !self.feed.is_over() {
            tokio::select! {
                biased;
                said = self.socket.recv() => match said {
                    Some(Ok(Message::Text(text))) => self.hear(&text).await?,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                    Some(Ok(_)) => {}
                },
                due = self.feed.next() => {
                    for event in &due.events {
                        self.say(text(event)).await?;
                    }
                    if due.breaks {
                        return Ok(());
                    }
                }
            }
            if heartbeat_at <= Instant::now() {
                heartbeat_at = Instant::now() + self.feed.heartbeat();
                self.socket.send(Message::Ping(Vec::new().into())).await?;
            }
        }
        Ok(())
    }

    async fn hear(&mut self, text: &str) -> Result<(), axum::Error> {
        match serde_json::from_str::<ClientMessage>(text) {
            Ok(message) if message.kind == "subscribe" => self.subscribe(&message.params).await,
            Ok(message) if message.kind == "unsubscribe" => {
                if let Some(channel) = self.channel(&message.params) {
                    self.feed.unsubscribe(&channel);
                }
                Ok(())
            }
            _ => self.complain("Unknown message").await,
        }
    }

    async fn subscribe(&mut self, params: &StreamParams) -> Result<(), axum::Error> {
        match self.channel(params) {
            Some(channel) => {
                self.feed.subscribe(channel);
                Ok(())
            }
            None => self.complain("Unknown channel requested").await,
        }
    }

    fn channel(&self, params: &StreamParams) -> Option<Channel> {
        let stream = params.stream.as_deref()?;
        let channel = Channel::of(stream, params)?;
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
