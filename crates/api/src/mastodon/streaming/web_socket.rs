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
};
use serde::{Deserialize, Serialize};
use tokio::time::{interval, timeout};
use utoipa::IntoParams;

use super::{
    channel::Channel,
    follower::{Follower, check},
    sse::SILENCE,
};
use crate::{
    App,
    auth::{
        CallerKind, RequestContext,
        caller::{Caller, authenticate},
        needs,
    },
    description::ids::ListId,
    transport::{Address, ApiError, ApiResult, Problem},
};

#[derive(Deserialize, Default, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct ConnectQuery {
    /// The first stream: `public`, `public:local` or `public:remote`, each also with `:media`; `user`, `user:notification`; `list`.
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

/// A message that the client is sent.
#[derive(Serialize)]
struct EventFrame<'a> {
    stream: Vec<String>,
    event: &'a str,
    payload: &'a str,
}

#[derive(Serialize)]
struct ErrorFrame<'a> {
    error: &'a str,
    status: u16,
}

/// Opens a WebSocket, over which a client subscribes to streams.
///
/// `list` is one of the account's own lists, or a source for the operator.
#[utoipa::path(
    get, path = "/api/v1/streaming", tag = "streaming", params(ConnectQuery),
    security((), ("account" = ["read:statuses"])),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, body = Problem, description = "No WebSocket, or no such stream"),
        (status = 422, body = Problem, description = "The predicate of the list cannot be read"),
    ),
)]
pub(super) async fn connect(
    State(app): State<Arc<App>>,
    Query(query): Query<ConnectQuery>,
    headers: HeaderMap,
    address: Address,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult {
    let with_token = with_token(headers.clone(), query.access_token.as_deref());
    let caller = caller(&app, &with_token).await?;
    let upgrade = upgrade.map_err(|_| {
        ApiError::BadParameter(
            "This is a WebSocket; server-sent events are at /api/v1/streaming/public and /api/v1/streaming/list".to_owned(),
        )
    })?;
    let first = match query.stream.as_deref() {
        None | Some("") => None,
        Some(name) => {
            let channel = Channel::named(name, query.list.as_deref());
            let unknown = || ApiError::BadParameter(UNKNOWN_STREAM.to_owned());
            let channel = channel.ok_or_else(unknown)?;
            check(&app, channel, &caller).await?;
            Some(channel)
        }
    };
    let channels = first.into_iter().collect();
    let context = RequestContext {
        viewer: caller.viewer(),
        app,
        address,
    };
    let client = Client(Follower::new(context, with_token, channels).await?);
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
        (status = 422, body = Problem, description = "The predicate of the list cannot be read"),
    ),
)]
pub(super) async fn connect_below(
    app: State<Arc<App>>,
    query: Query<ConnectQuery>,
    headers: HeaderMap,
    address: Address,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> ApiResult {
    connect(app, query, headers, address, upgrade).await
}

/// The headers with the token that came in one of the ways that clients have.
fn with_token(mut headers: HeaderMap, token: Option<&str>) -> HeaderMap {
    let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL);
    let protocol = protocol.and_then(|protocol| protocol.to_str().ok());
    if let Some(token) = token.or(protocol)
        && !headers.contains_key(AUTHORIZATION)
        && let Ok(bearer) = HeaderValue::try_from(format!("Bearer {token}"))
    {
        headers.insert(AUTHORIZATION, bearer);
    }
    headers
}

/// Whom a token names. It needs the scope that reading posts needs.
async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let caller = authenticate(headers, app).await?;
    match caller.kind {
        CallerKind::Anonymous => Ok(caller),
        _ => caller.check::<needs::ReadStatuses>().map(|()| caller),
    }
}

struct Client(Follower);

impl Client {
    async fn serve(mut self, mut socket: WebSocket) {
        let mut silence = interval(SILENCE);
        loop {
            let frames = tokio::select! {
                happening = self.0.wait() => match self.0.messages(happening).await {
                    Some(messages) => messages.iter().filter_map(|(channel, message)| frame(&EventFrame {
                        stream: channel.names(),
                        event: message.event,
                        payload: &message.payload,
                    })).collect(),
                    None => return,
                },
                received = socket.recv() => match received {
                    Some(Ok(Frame::Text(text))) => self.request(&text).await.into_iter().collect(),
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

    /// Returns what it is answered, which is nothing if all is well.
    async fn request(&mut self, text: &str) -> Option<Frame> {
        let refused = |error: &str, status| frame(&ErrorFrame { error, status });
        let Ok(request) = serde_json::from_str::<Request>(text) else {
            return refused("Invalid message", 400);
        };
        let Some(channel) = Channel::named(&request.stream, request.list.as_deref()) else {
            return refused(UNKNOWN_STREAM, 400);
        };
        self.0.channels.retain(|known| *known != channel);
        if request.kind == RequestKind::Unsubscribe {
            return None;
        }
        if self.0.channels.len() >= MAX_CHANNELS {
            return refused("Too many streams", 400);
        }
        match self.0.subscribe(channel).await {
            Ok(()) => None,
            Err(ApiError::Unauthorized { .. }) => refused("Missing access token", 401),
            Err(ApiError::OutsideScopes) => refused("Outside the authorized scopes", 403),
            Err(ApiError::NotFound) => refused("Record not found", 404),
            Err(ApiError::Unprocessable(reason)) => refused(&reason, 422),
            Err(_) => refused("The server's store does not work", 503),
        }
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
