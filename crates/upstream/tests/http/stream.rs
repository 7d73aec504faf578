//! Streams.

use std::time::Duration;

use driftline_core::{
    answer::{Event, Failure, FailureKind},
    timeline::Streaming,
};
use driftline_net::Options;
use driftline_upstream::{Stream, StreamEndpoint, StreamMessage, Timeline, Upstream};
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::server::{Reply, Server, answer, client, head, options};

const TOKEN: &str = "tOkEn-0123456789";
const SSE: &str = "Content-Type: text/event-stream; charset=utf-8";

async fn endpoint(client: &Upstream) -> StreamEndpoint {
    let endpoint = client.stream_endpoint().await.expect("an answer");
    endpoint.expect("Mastodon streams")
}

/// The events of an opened stream until its end, and how it ends.
async fn events(mut stream: Stream) -> (Vec<String>, FailureKind) {
    let mut all = Vec::new();
    loop {
        all.push(match stream.next().await {
            Ok(StreamMessage::Event(Event::Posted(post))) => format!("posted {}", post.id),
            Ok(StreamMessage::Event(Event::Edited(post))) => format!("edited {}", post.id),
            Ok(StreamMessage::Event(Event::Deleted(id))) => format!("deleted {id}"),
            Ok(StreamMessage::Other) => "other".to_owned(),
            Ok(StreamMessage::Unusable) => "unusable".to_owned(),
            Err(failure) => {
                assert!(!format!("{failure} {stream:?}").contains(TOKEN));
                return (all, failure.kind);
            }
        });
    }
}

/// A server whose streams send these bytes after the head of an event stream.
async fn streaming(body: &[u8]) -> Server {
    let mut bytes = head("200 OK", &[SSE]);
    bytes.extend_from_slice(body);
    Server::start(move |head| {
        if head.contains("/api/v1/streaming") {
            Reply::BytesThenSilence(bytes.clone())
        } else {
            Reply::Bytes(answer("404 Not Found", &[], ""))
        }
    })
    .await
}

fn short_silence() -> Options {
    Options {
        silence_timeout: Duration::from_millis(300),
        ..options()
    }
}

#[tokio::test]
async fn each_timeline_has_its_stream() {
    let server = streaming(b":)\n").await;
    let client = server.client_with(options(), Some(TOKEN));
    let endpoint = endpoint(&client).await;
    let asked = server.requests().len();
    for timeline in ["home", "public", "local", "remote", "tag:a'b", "list:7"] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        assert!(client.streams(&timeline));
        let stream = client.stream(&timeline, Streaming::Auto, &endpoint).await;
        assert!(stream.expect("opened").is_some(), "{timeline}");
    }
    for timeline in ["mentions", "account:7"] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        assert!(!client.streams(&timeline));
        let stream = client.stream(&timeline, Streaming::Auto, &endpoint).await;
        assert!(stream.expect("no failure").is_none(), "{timeline}");
    }
    let off = client
        .stream(&Timeline::Home, Streaming::Off, &endpoint)
        .await;
    assert!(off.expect("no failure").is_none());
    assert_eq!(
        server.targets()[asked..],
        [
            "/api/v1/streaming/user",
            "/api/v1/streaming/public",
            "/api/v1/streaming/public/local",
            "/api/v1/streaming/public/remote",
            "/api/v1/streaming/hashtag?tag=a%27b",
            "/api/v1/streaming/list?list=7",
        ]
    );
    for request in &server.requests()[asked..] {
        let request = request.to_ascii_lowercase();
        assert!(
            request.contains("accept: text/event-stream\r\n"),
            "{request}"
        );
        assert!(
            request.contains("accept-encoding: identity\r\n"),
            "{request}"
        );
        assert!(request.contains(&format!("bearer {}", TOKEN.to_ascii_lowercase())));
        assert!(!request.contains("access_token"));
    }
}

#[tokio::test]
async fn events_come_until_silence() {
    let large = format!("event: update\ndata: {}\n\n", "x".repeat(2 << 20));
    let body = format!(
        ":)\n:thump\nevent: update\ndata: {{\"id\":\"1\"}}\n\n{large}event: update\ndata: {{\n\nevent: notification\ndata: {{}}\n\nevent: status.update\ndata: {{\"id\":\"1\"}}\n\nevent: delete\ndata: 1\n\nevent: update\ndata: {{\"id\":\"2\"}}\n"
    );
    let server = streaming(body.as_bytes()).await;
    let client = server.client_with(short_silence(), Some(TOKEN));
    let stream = client
        .stream(&Timeline::Home, Streaming::Sse, &endpoint(&client).await)
        .await;
    let all = events(stream.expect("opened").expect("a stream"));
    let all = tokio::time::timeout(Duration::from_secs(10), all).await;
    let (events, end) = all.expect("silence is noticed");
    let expected = [
        "posted 1",
        "unusable",
        "unusable",
        "other",
        "edited 1",
        "deleted 1",
    ];
    assert_eq!(events, expected);
    assert_eq!(end, FailureKind::TimedOut);
}

#[tokio::test]
async fn heartbeats_keep_a_stream_alive_and_its_end_is_noticed() {
    let mut dripping = head("200 OK", &[SSE]);
    dripping.extend_from_slice(b":");
    let mut ended = head("200 OK", &[SSE]);
    ended.extend_from_slice(b"event: delete\ndata: 1\n\nevent: update\ndata: {");
    let server = Server::start(move |head| {
        if head.contains("/api/v1/streaming/public") {
            Reply::BytesThenDrip(dripping.clone())
        } else if head.contains("/api/v1/streaming") {
            Reply::Bytes(ended.clone())
        } else {
            Reply::Bytes(answer("404 Not Found", &[], ""))
        }
    })
    .await;
    let client = server.client_with(short_silence(), None);
    let endpoint = endpoint(&client).await;
    let stream = client
        .stream(&Timeline::Public, Streaming::Auto, &endpoint)
        .await;
    let mut stream = stream.expect("opened").expect("a stream");
    let waited = tokio::time::timeout(Duration::from_secs(1), stream.next()).await;
    assert!(waited.is_err(), "neither an event nor the end: {waited:?}");

    let stream = client
        .stream(&Timeline::Home, Streaming::Auto, &endpoint)
        .await;
    let (events, end) = events(stream.expect("opened").expect("a stream")).await;
    assert_eq!(events, ["deleted 1"]);
    assert_eq!(end, FailureKind::Truncated);
}

#[tokio::test]
async fn answers_without_a_stream_are_reported() {
    let error = format!(r#"{{"error":"{TOKEN} is no token"}}"#);
    for (bytes, way, kind) in [
        (
            answer("401 Unauthorized", &[], &error),
            Streaming::Auto,
            FailureKind::Unauthorized,
        ),
        (
            answer("503 Service Unavailable", &[], &error),
            Streaming::Auto,
            FailureKind::ServerError,
        ),
        (
            answer("429 Too Many Requests", &[], ""),
            Streaming::WebSocket,
            FailureKind::Throttled,
        ),
        (
            answer("404 Not Found", &[], &error),
            Streaming::Auto,
            FailureKind::NotFound,
        ),
        (
            answer("405 Method Not Allowed", &[], ""),
            Streaming::Sse,
            FailureKind::NotFound,
        ),
        (
            answer("501 Not Implemented", &[], ""),
            Streaming::Auto,
            FailureKind::NotFound,
        ),
        (
            answer("200 OK", &["Content-Type: text/html"], "<html>"),
            Streaming::Auto,
            FailureKind::NotFound,
        ),
        (
            answer("200 OK", &[], "{}"),
            Streaming::WebSocket,
            FailureKind::NotFound,
        ),
        (
            head("101 Switching Protocols", &["Upgrade: websocket"]),
            Streaming::WebSocket,
            FailureKind::NotFound,
        ),
        (
            answer(
                "301 Moved Permanently",
                &["Location: http://thief.example/"],
                "",
            ),
            Streaming::Auto,
            FailureKind::Redirected,
        ),
        (Vec::new(), Streaming::Auto, FailureKind::Unreachable),
    ] {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let server = Server::start(move |head| {
            Reply::Bytes(if head.contains("/api/v1/streaming") {
                bytes.clone()
            } else {
                answer("404 Not Found", &[], "")
            })
        })
        .await;
        let client = server.client_with(options(), Some(TOKEN));
        let opened = client
            .stream(&Timeline::Home, way, &endpoint(&client).await)
            .await;
        let failure = opened.expect_err(&text);
        assert_eq!(failure.kind, kind, "{text}: {failure}");
        assert!(!failure.message.contains(TOKEN), "{failure}");
    }
}

#[tokio::test]
async fn the_token_goes_only_where_the_server_may_send_it() {
    let elsewhere = streaming(b"").await;
    let body = format!(
        r#"{{"configuration":{{"urls":{{"streaming":"ws://localhost:{}"}}}}}}"#,
        elsewhere.port()
    );
    let same_host = format!(
        r#"{{"urls":{{"streaming_api":"ws://127.0.0.1:{}"}}}}"#,
        elsewhere.port()
    );
    // Without TLS another host's name is not believed.
    let unavailable = "503 Service Unavailable";
    let (server, opened) = opened_at("/api/v2/instance", body, unavailable).await;
    assert!(opened.is_err());
    assert_eq!(elsewhere.targets().len(), 0);
    assert_eq!(server.targets().len(), 2);
    // Another port of the same host is, in the older answer too.
    let (_server, opened) = opened_at("/api/v1/instance", same_host, "404 Not Found").await;
    assert!(opened.expect("opened").is_some());
    assert_eq!(elsewhere.targets(), ["/api/v1/streaming/user"]);
}

/// Opens the stream of a server that answers this at one path and that status elsewhere.
async fn opened_at(
    path: &'static str,
    body: String,
    otherwise: &'static str,
) -> (Server, Result<Option<Stream>, Failure>) {
    let server = Server::start(move |head| {
        Reply::Bytes(if head.contains(path) {
            answer("200 OK", &[], &body)
        } else {
            answer(otherwise, &[], "")
        })
    })
    .await;
    let client = server.client_with(options(), Some(TOKEN));
    let named = endpoint(&client).await;
    let opened = client
        .stream(&Timeline::Home, Streaming::Auto, &named)
        .await;
    (server, opened)
}

/// A server without server-sent events that sends these messages over a
/// WebSocket, asks for a sign of life, and closes once it has one.
async fn web_sockets(messages: Vec<Message>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut start = [0; 64];
            let read = stream.peek(&mut start).await.unwrap_or(0);
            if start[..read].starts_with(b"GET /api/v1/streaming?stream=user ") {
                tokio::spawn(talk(stream, messages.clone()));
            } else {
                // Reading first keeps the close from turning into a reset.
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(&answer("404 Not Found", &[], "")).await;
            }
        }
    });
    address
}

async fn talk(stream: TcpStream, messages: Vec<Message>) {
    let mut socket = accept_async(stream).await.expect("a handshake");
    socket
        .send(Message::Ping(vec![1].into()))
        .await
        .expect("sent");
    for message in messages {
        socket.send(message).await.expect("sent");
    }
    let answered = socket.next().await.expect("something").expect("a message");
    assert_eq!(answered, Message::Pong(vec![1].into()));
    let _ = socket.close(None).await;
}

#[tokio::test]
async fn a_server_without_server_sent_events_is_asked_for_a_web_socket() {
    let text = |text: &str| Message::Text(text.into());
    let address = web_sockets(vec![
        text(r#"{"stream":["user"],"event":"update","payload":"{\"id\":\"1\"}"}"#),
        text(r#"{"stream":["user"],"event":"delete","payload":"1"}"#),
        Message::Binary(vec![0xff; 9].into()),
        text("{"),
    ])
    .await;
    for way in [Streaming::Auto, Streaming::WebSocket] {
        let client = client(&address, options(), Some(TOKEN));
        let stream = client
            .stream(&Timeline::Home, way, &endpoint(&client).await)
            .await;
        let stream = stream.expect("opened").expect("a stream");
        assert_eq!(stream.way(), "WebSocket");
        let (events, end) = events(stream).await;
        assert_eq!(events, ["posted 1", "deleted 1", "unusable"]);
        assert_eq!(end, FailureKind::Truncated);
    }
    let client = client(&address, options(), Some(TOKEN));
    let endpoint = endpoint(&client).await;
    let sse = client
        .stream(&Timeline::Home, Streaming::Sse, &endpoint)
        .await;
    assert_eq!(sse.expect_err("none").kind, FailureKind::NotFound);
}

#[tokio::test]
async fn a_web_socket_that_complains_or_sends_too_much_is_left() {
    let complaint = format!(r#"{{"error":"{TOKEN} may not","status":403}}"#);
    for (message, kind) in [
        (complaint, FailureKind::Refused),
        ("x".repeat(2 << 20), FailureKind::Truncated),
    ] {
        let address = web_sockets(vec![Message::Text(message.into())]).await;
        let client = client(&address, options(), Some(TOKEN));
        let stream = client
            .stream(&Timeline::Home, Streaming::Auto, &endpoint(&client).await)
            .await;
        let (events, end) = events(stream.expect("opened").expect("a stream")).await;
        assert_eq!((events.len(), end), (0, kind));
    }
}
