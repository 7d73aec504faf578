use std::{sync::Arc, time::Duration};

use axum::{
    extract::{
        Query, State, WebSocketUpgrade,
        ws::{Message as Frame, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    http::{
        HeaderMap, HeaderValue,
        header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL},
    },
    response::Response,
};
use driftline_store::timeline::Viewer;
use serde::{Deserialize, Serialize};
use tokio::time::{interval, timeout};
use utoipa::IntoParams;

use super::{
    channel::{Channel, Timeline},
    message::message,
    sse::{SILENCE, everything},
};
use crate::{
    App,
    auth::{
        CallerKind,
        caller::{Caller, authenticate},
        needs,
    },
    description::ids::ListId,
    feed::{FeedEvent, FeedReader, Start},
    transport::{ApiError, Problem},
};

#[derive(Deserialize, Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct ConnectQuery {
    /// The first stream: `public`, `public:local` or `public:remote`, each also with `:media`; `list`.
    stream: Option<String>,
    /// Which list.
    #[param(value_type = Option<ListId>)]
    list: Option<String>,
    /// A token, for clients that cannot send headers.
    access_token: Option<String>,
}

/// What a client sends.
#[derive(Deserialize)]
struct Request {
    #[serde(rename = "type")]
    kind: RequestKind,
    stream: String,
    list: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum RequestKind {
    Subscribe,
    Unsubscribe,
}

/// What it is sent.
#[derive(Serialize)]
struct Told<'a> {
    stream: Vec<String>,
    event: &'a str,
    payload: &'a str,
}

#[derive(Serialize)]
struct Refused {
    error: &'static str,
    status: u16,
}

/// Opens a WebSocket, over which a client subscribes to streams.
///
/// `list` needs the operator's token.
#[utoipa::path(
    get, path = "/api/v1/streaming", tag = "streaming", params(ConnectQuery),
    security((), ("account" = ["read:statuses"])),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, body = Problem, description = "No WebSocket, or no such stream"),
    ),
)]
pub(super) async fn connect(
    State(app): State<Arc<App>>,
    Query(query): Query<ConnectQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let caller = caller(&app, headers.clone(), query.access_token.as_deref()).await?;
    let upgrade = upgrade.map_err(|_| {
        ApiError::BadParameter(
            "This is a WebSocket; server-sent events are at /api/v1/streaming/public and /api/v1/streaming/list".to_owned(),
        )
    })?;
    let viewer = caller.viewer();
    let first = match query.stream.as_deref() {
        None | Some("") => None,
        Some(name) => Some(match Channel::named(name, query.list.as_deref()) {
            Some(channel) if is_allowed(channel, viewer) => channel,
            Some(_) => return Err(ApiError::Unauthorized { presented: false }),
            None => return Err(ApiError::BadParameter(UNKNOWN_STREAM.to_owned())),
        }),
    };
    let reader = app.feed.follow(everything(), Start::Now).await?;
    let client = Client {
        app,
        reader,
        channels: first.into_iter().collect(),
        viewer,
    };
    // Browsers send the token as a protocol, and want it back.
    let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL);
    let protocols = protocol.and_then(|protocol| protocol.to_str().ok());
    let protocols: Vec<String> = protocols.into_iter().map(str::to_owned).collect();
    Ok(upgrade
        .protocols(protocols)
        .max_message_size(MAX_REQUEST)
        .on_upgrade(|socket| client.serve(socket)))
}

/// The same, at the address that some clients use.
#[utoipa::path(
    get, path = "/api/v1/streaming/", tag = "streaming", params(ConnectQuery),
    security((), ("account" = ["read:statuses"])),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, body = Problem, description = "No WebSocket, or no such stream"),
    ),
)]
pub(super) async fn connect_below(
    app: State<Arc<App>>,
    query: Query<ConnectQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    connect(app, query, headers, upgrade).await
}

/// Whom the token names that came in one of the ways that clients have. It needs the scope that reading
/// posts needs.
async fn caller(
    app: &App,
    mut headers: HeaderMap,
    token: Option<&str>,
) -> Result<Caller, ApiError> {
    let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL);
    let protocol = protocol.and_then(|protocol| protocol.to_str().ok());
    if let Some(token) = token.or(protocol)
        && !headers.contains_key(AUTHORIZATION)
        && let Ok(bearer) = HeaderValue::try_from(format!("Bearer {token}"))
    {
        headers.insert(AUTHORIZATION, bearer);
    }
    let caller = authenticate(&headers, app).await?;
    match caller.kind {
        CallerKind::Anonymous => Ok(caller),
        _ => caller.check::<needs::ReadStatuses>().map(|()| caller),
    }
}

fn is_allowed(channel: Channel, viewer: Viewer) -> bool {
    viewer == Viewer::Operator || !matches!(channel.timeline, Timeline::List(_))
}

struct Client {
    app: Arc<App>,
    reader: FeedReader,
    channels: Vec<Channel>,
    viewer: Viewer,
}

impl Client {
    async fn serve(mut self, mut socket: WebSocket) {
        let mut silence = interval(SILENCE);
        loop {
            let frames = tokio::select! {
                next = self.reader.next() => match next {
                    Ok(Some(event)) => match self.told(&event).await {
                        Ok(frames) => frames,
                        Err(_) => return,
                    },
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(%error, "a stream ends: the store cannot be read");
                        return;
                    }
                },
                received = socket.recv() => match received {
                    Some(Ok(Frame::Text(text))) => self.request(&text).into_iter().collect(),
                    // It answers pings itself.
                    Some(Ok(_)) => Vec::new(),
                    Some(Err(_)) | None => return,
                },
                _ = silence.tick() => vec![Frame::Ping(Default::default())],
            };
            for frame in frames {
                // A client that takes nothing for so long is gone.
                if !matches!(timeout(MAX_SEND, socket.send(frame)).await, Ok(Ok(()))) {
                    return;
                }
            }
        }
    }

    async fn told(&self, event: &FeedEvent) -> Result<Vec<Frame>, ApiError> {
        let mut frames = Vec::new();
        for channel in &self.channels {
            if let Some(message) = message(&self.app, self.viewer, *channel, event).await? {
                frames.extend(frame(&Told {
                    stream: channel.names(),
                    event: message.event,
                    payload: &message.payload,
                }));
            }
        }
        Ok(frames)
    }

    /// Returns what it is answered, which is nothing if all is well.
    fn request(&mut self, text: &str) -> Option<Frame> {
        let refused = |error, status| frame(&Refused { error, status });
        let Ok(request) = serde_json::from_str::<Request>(text) else {
            return refused("Invalid message", 400);
        };
        let Some(channel) = Channel::named(&request.stream, request.list.as_deref()) else {
            return refused(UNKNOWN_STREAM, 400);
        };
        self.channels.retain(|known| *known != channel);
        if request.kind == RequestKind::Unsubscribe {
            return None;
        }
        if !is_allowed(channel, self.viewer) {
            return refused("Missing access token", 401);
        }
        if self.channels.len() >= MAX_CHANNELS {
            return refused("Too many streams", 400);
        }
        self.channels.push(channel);
        None
    }
}

fn frame(value: &impl Serialize) -> Option<Frame> {
    let text = serde_json::to_string(value).ok()?;
    Some(Frame::Text(text.into()))
}

const UNKNOWN_STREAM: &str = "Unknown stream type";
const MAX_REQUEST: usize = 16 * 1024;
const MAX_CHANNELS: usize = 100;
const MAX_SEND: Duration = Duration::from_secs(30);
