//! Mastodon's streams: what happens in a timeline, as it happens.
//!
//! Nothing is replayed after a connection broke, and servers lose events, so a
//! stream only shows posts sooner; that none is missing is for polls to prove.

mod endpoint;
mod event;
mod sse;

use std::{fmt, time::Duration};

use driftline_core::{
    answer::{Failure, FailureKind},
    timeline::Streaming,
};
use driftline_mastodon::RawObject;
use driftline_net::{OpenAnswer, Opened, Upgraded, location};
use futures_util::StreamExt;
use http::{
    StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue,
        SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{Role, WebSocketConfig},
    },
};

pub use self::{endpoint::StreamEndpoint, event::StreamMessage};
use crate::{
    Timeline,
    access::{Access, Answer},
    body, failure,
};

/// An open stream.
pub struct Stream {
    wire: Wire,
    access: Access,
    name: String,
    silence: Duration,
}

/// The answer's headers may repeat the token.
impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .field("way", &self.way())
            .finish_non_exhaustive()
    }
}

enum Wire {
    Sse(Box<(OpenAnswer, sse::Parser)>),
    WebSocket(Box<WebSocketStream<Upgraded>>),
}

/// What a way of streaming gives; after its failure the server streams in another way, if it does.
type Offer = Result<Stream, Failure>;

/// Whether Mastodon streams a timeline.
pub(crate) fn is_streamed(timeline: &Timeline) -> bool {
    Channel::of(timeline).is_some()
}

/// Asks the server where its streams are.
///
/// # Errors
/// A [`Failure`] if it does not answer; a server that names none streams
/// by itself.
pub(crate) async fn endpoint(access: &Access) -> Result<StreamEndpoint, Failure> {
    let own = StreamEndpoint::own(access.address());
    let answer = access.fetch(access.url("/api/v2/instance")).await?;
    let named = match answer.status {
        StatusCode::OK => named(&answer.body, &["configuration", "urls"], "streaming"),
        StatusCode::NOT_FOUND => {
            let answer = access.fetch(access.url("/api/v1/instance")).await?;
            match answer.status {
                StatusCode::OK => named(&answer.body, &["urls"], "streaming_api"),
                _ => None,
            }
        }
        _ => None,
    };
    let Some(named) = named else { return Ok(own) };
    match StreamEndpoint::named(access.address(), &named) {
        Some(endpoint) => Ok(endpoint),
        None => {
            tracing::debug!(server = %access.address(), "ignoring the streaming server that the upstream names");
            Ok(own)
        }
    }
}

/// Opens the stream of a timeline; `None` if it has none or `way` is
/// `Off`.
///
/// # Errors
/// A [`Failure`] of whatever keeps it from opening.
pub(crate) async fn open(
    access: &Access,
    timeline: &Timeline,
    way: Streaming,
    endpoint: &StreamEndpoint,
) -> Result<Option<Stream>, Failure> {
    let Some(channel) = Channel::of(timeline) else {
        return Ok(None);
    };
    let offer = match way {
        Streaming::Off => return Ok(None),
        Streaming::Sse => sse(access, &channel, endpoint).await?,
        Streaming::WebSocket => web_socket(access, &channel, endpoint).await?,
        Streaming::Auto => match sse(access, &channel, endpoint).await? {
            Err(_) => web_socket(access, &channel, endpoint).await?,
            open => open,
        },
    };
    offer.map(Some)
}

async fn sse(
    access: &Access,
    channel: &Channel<'_>,
    endpoint: &StreamEndpoint,
) -> Result<Offer, Failure> {
    let url = endpoint.url(
        &format!("/api/v1/streaming/{}", channel.path),
        channel.parameter.as_slice(),
    );
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
        // Compressors hold events back until they have enough of them.
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]);
    let name = location(&url);
    let response = match access.open(url, headers, StatusCode::OK).await? {
        Opened::Stream(response) => response,
        Opened::Refused(answer) => return refused(access, &answer.into()),
    };
    let declared = response.headers().get(CONTENT_TYPE);
    let is_stream = declared.is_some_and(|declared| {
        let declared = declared.as_bytes().to_ascii_lowercase();
        declared.starts_with(b"text/event-stream")
    });
    if !is_stream {
        return Ok(Err(no_stream(&name)));
    }
    let wire = Wire::Sse(Box::new((response, sse::Parser::new(MAX_EVENT_BYTES))));
    Ok(Ok(opened(access, wire, name)))
}

async fn web_socket(
    access: &Access,
    channel: &Channel<'_>,
    endpoint: &StreamEndpoint,
) -> Result<Offer, Failure> {
    let mut parameters = vec![("stream", channel.stream)];
    parameters.extend(channel.parameter);
    let url = endpoint.url("/api/v1/streaming", &parameters);
    let key = generate_key();
    let Ok(sent_key) = HeaderValue::from_str(&key) else {
        return Ok(Err(no_stream(&location(&url))));
    };
    let headers = HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (SEC_WEBSOCKET_KEY, sent_key),
    ]);
    let name = location(&url);
    let expected = StatusCode::SWITCHING_PROTOCOLS;
    let response = match access.open(url, headers, expected).await? {
        Opened::Stream(response) => response,
        Opened::Refused(answer) if answer.status == StatusCode::OK => {
            return Ok(Err(no_stream(&name)));
        }
        Opened::Refused(answer) => return refused(access, &answer.into()),
    };
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accepted.map(HeaderValue::as_bytes) != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Ok(Err(no_stream(&name)));
    }
    let upgraded = response
        .upgrade()
        .await
        .map_err(|error| access.fetch_failure(&error))?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MAX_EVENT_BYTES))
        .max_frame_size(Some(MAX_EVENT_BYTES));
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    let wire = Wire::WebSocket(Box::new(socket));
    Ok(Ok(opened(access, wire, name)))
}

fn opened(access: &Access, wire: Wire, name: String) -> Stream {
    Stream {
        wire,
        silence: access.options().silence_timeout,
        access: access.clone(),
        name,
    }
}

impl Stream {
    /// The next message of the stream. Dropping the future loses nothing.
    ///
    /// # Errors
    /// A [`Failure`] once it has ended, or nothing came for too long, not even
    /// a heartbeat: the stream is over then.
    pub async fn next(&mut self) -> Result<StreamMessage, Failure> {
        loop {
            if let Wire::Sse(sse) = &mut self.wire
                && let Some(frame) = sse.1.next()
            {
                return Ok(match frame {
                    sse::Frame::Event(name, data) => event::read(&name, &data),
                    sse::Frame::TooLarge => StreamMessage::Unusable,
                });
            }
            // Each heartbeat restarts the timeout.
            let came = tokio::time::timeout(self.silence, self.wire.receive(&self.name)).await;
            let outcome = came.unwrap_or_else(|_| {
                Err(Failure::new(
                    FailureKind::TimedOut,
                    format!("{}: the stream has fallen silent", self.name),
                ))
            });
            match outcome {
                Ok(None) => {}
                Ok(Some(message)) => return Ok(message),
                Err(failure) => return Err(self.access.without_secrets(failure)),
            }
        }
    }

    /// How it comes, for people.
    pub const fn way(&self) -> &'static str {
        match self.wire {
            Wire::Sse(_) => "server-sent events",
            Wire::WebSocket(_) => "WebSocket",
        }
    }
}

impl Wire {
    /// Waits for something to come; `None` if that is no whole message yet.
    async fn receive(&mut self, name: &str) -> Result<Option<StreamMessage>, Failure> {
        let ended = |why: &str| {
            Failure::new(
                FailureKind::Truncated,
                format!("{name}: the stream ended{why}"),
            )
        };
        match self {
            Self::Sse(sse) => {
                let (response, parser) = &mut **sse;
                match response.chunk().await {
                    Ok(Some(bytes)) => {
                        parser.feed(bytes.as_ref());
                        Ok(None)
                    }
                    Ok(None) => Err(ended("")),
                    Err(error) => Err(failure::of_fetching(&error)),
                }
            }
            Self::WebSocket(socket) => match socket.next().await {
                Some(Ok(Message::Text(text))) => match event::read_message(&text) {
                    Ok(message) => Ok(Some(message)),
                    Err(said) => Err(Failure::new(
                        FailureKind::Refused,
                        format!("{name}: the server does not stream this: “{said}”"),
                    )),
                },
                Some(Ok(Message::Close(_))) | None => Err(ended("")),
                // Pings, which are heartbeats; they are answered on the way.
                Some(Ok(_)) => Ok(None),
                Some(Err(_)) => Err(ended(": the connection broke")),
            },
        }
    }
}

/// A timeline's name among streams.
struct Channel<'t> {
    /// Its path below `/api/v1/streaming/`.
    path: &'static str,
    /// Its name in WebSockets' addresses.
    stream: &'static str,
    parameter: Option<(&'static str, &'t str)>,
}

impl<'t> Channel<'t> {
    fn of(timeline: &'t Timeline) -> Option<Self> {
        let (path, stream, parameter) = match timeline {
            Timeline::Home => ("user", "user", None),
            Timeline::Public => ("public", "public", None),
            Timeline::Local => ("public/local", "public:local", None),
            Timeline::Remote => ("public/remote", "public:remote", None),
            Timeline::Tag(name) => ("hashtag", "hashtag", Some(("tag", name.as_str()))),
            Timeline::List(id) => ("list", "list", Some(("list", id.as_str()))),
            // Mentions have the places of notifications. Streams show those too, but
            // not the entries that would lie between them.
            Timeline::Account(_) | Timeline::Mentions => return None,
        };
        Some(Self {
            path,
            stream,
            parameter,
        })
    }
}

/// What an answer's status means for this way of streaming.
fn refused(access: &Access, answer: &Answer) -> Result<Offer, Failure> {
    let failure = access.status_failure(answer);
    match answer.status.as_u16() {
        400 | 404 | 405 | 406 | 410 | 426 | 501 => Ok(Err(Failure {
            kind: FailureKind::NotFound,
            ..failure
        })),
        _ => Err(failure),
    }
}

fn no_stream(name: &str) -> Failure {
    Failure::new(
        FailureKind::NotFound,
        format!("{name}: the server has no stream there"),
    )
}

/// A text inside objects of an answer.
fn named(answer: &[u8], path: &[&str], key: &str) -> Option<String> {
    let mut object: RawObject<'_> = body::object(answer).ok()?;
    for step in path {
        object = object.object(step);
    }
    object.some_text(key).map(std::borrow::Cow::into_owned)
}

/// Far above any post; what is larger is left to polls.
const MAX_EVENT_BYTES: usize = 1024 * 1024;
const READ_BUFFER_BYTES: usize = 16 * 1024;
