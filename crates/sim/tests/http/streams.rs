//! Streams: what happens is sent as it becomes visible, and only once.

use std::time::Duration;

use driftline_sim::{
    Revocation, SpanMs, StreamsConfig, TruePost, WorldConfig,
    http::{ServerConfig, SetClock, SimServer, Timeline},
};
use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::raw::{ask, frozen_server};

/// An open stream of server-sent events and what came so far.
struct Sse {
    socket: TcpStream,
    text: String,
}

impl Sse {
    /// HTTP/1.0, so that the body comes without chunks around it.
    async fn open(server: &SimServer, path: &str, token: &str) -> Self {
        let mut socket = TcpStream::connect(server.address())
            .await
            .expect("connects");
        let request = format!(
            "GET /api/v1/streaming/{path} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.expect("sends");
        let mut stream = Self {
            socket,
            text: String::new(),
        };
        while !stream.text.contains(":)\n") {
            assert!(!stream.read().await, "it ended: {}", stream.text);
        }
        stream
    }

    /// Reads until nothing comes for a while; whether the connection ended.
    async fn read(&mut self) -> bool {
        let mut chunk = vec![0; 65_536];
        loop {
            match timeout(Duration::from_millis(150), self.socket.read(&mut chunk)).await {
                Err(_) => return false,
                Ok(Ok(read @ 1..)) => self
                    .text
                    .push_str(std::str::from_utf8(&chunk[..read]).expect("text")),
                Ok(_) => return true,
            }
        }
    }

    /// Names and IDs of the events so far.
    fn events(&self) -> Vec<(String, String)> {
        let blocks = self.text.split("\n\n");
        blocks
            .filter_map(|block| {
                let (_, event) = block.split_once("event: ")?;
                let (name, data) = event.split_once("\ndata: ")?;
                Some((name.to_owned(), id_of(data)))
            })
            .collect()
    }

    fn ids(&self, name: &str) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|(it, _)| it == name)
            .map(|(_, id)| id)
            .collect()
    }
}

fn id_of(payload: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(payload).expect("JSON") {
        serde_json::Value::Object(status) => status["id"].as_str().expect("text").to_owned(),
        // An ID alone reads as a number.
        other => other.to_string(),
    }
}

/// The IDs of posts that became visible after a time, in that order.
fn appeared(server: &SimServer, timeline: &Timeline, after_ms: i64) -> Vec<String> {
    let mut posts: Vec<TruePost> = server.truth(timeline).expect("it exists").posts;
    posts.retain(|post| post.visible_at_ms > after_ms);
    posts.sort_by_key(|post| post.visible_at_ms);
    posts.iter().map(|post| post.id.to_string()).collect()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids
}

async fn plain() -> (SimServer, SetClock) {
    with(WorldConfig::measured(20.0)).await
}

async fn with(world: WorldConfig) -> (SimServer, SetClock) {
    let config = ServerConfig {
        world,
        lists: 1,
        ..ServerConfig::default()
    };
    frozen_server(config).await
}

#[tokio::test]
async fn posts_are_sent_when_they_appear_and_never_again() {
    for (path, timeline) in [
        ("user", Timeline::Home),
        ("public", Timeline::Public),
        ("hashtag?tag=tide", Timeline::Tag("tide".into())),
        ("list?list=1", Timeline::List(1)),
    ] {
        let (server, clock) = plain().await;
        let connected_ms = clock.now_ms();
        let mut first = Sse::open(&server, path, "t").await;
        for _ in 0..4 {
            clock.set(clock.now_ms() + 1_000);
            assert!(!first.read().await);
        }
        let published = appeared(&server, &timeline, connected_ms);
        assert!(published.len() > 50);
        assert_eq!(sorted(first.ids("update")), sorted(published), "{path}");
        drop(first);
        let mut second = Sse::open(&server, path, "t").await;
        assert!(!second.read().await);
        assert_eq!(second.events(), [], "nothing is replayed");
    }
}

#[tokio::test]
async fn local_streams_leave_out_other_servers() {
    let mut world = WorldConfig::measured(20.0);
    world.federated_share = 0.5;
    let (server, clock) = with(world).await;
    let mut all = Sse::open(&server, "public", "t").await;
    let mut local = Sse::open(&server, "public/local", "t").await;
    let mut remote = Sse::open(&server, "public/remote", "t").await;
    clock.set(clock.now_ms() + 5_000);
    for stream in [&mut all, &mut local, &mut remote] {
        stream.read().await;
    }
    assert!(local.events().len() > 20 && remote.events().len() > 20);
    let both = [local.ids("update"), remote.ids("update")].concat();
    assert_eq!(sorted(both), sorted(all.ids("update")));
    assert!(
        local.text.contains("\"acct\":\"drifter") && !local.text.contains(".example\",\"display")
    );
}

#[tokio::test]
async fn tokens_and_names_are_checked() {
    let (server, _) = plain().await;
    for (path, token, status) in [
        ("health", "", "200"),
        ("user", "", "401"),
        ("list?list=1", "", "401"),
        ("list?list=7", "t", "404"),
        ("hashtag", "t", "404"),
        ("nothing", "t", "404"),
    ] {
        let path = format!("/api/v1/streaming/{path}");
        assert_eq!(ask(&server, &path, token).await.status(), status, "{path}");
    }
    server.change_faults(|faults| {
        faults.revocations.push(Revocation {
            token: "gone".into(),
            after_ms: 0,
        });
    });
    let revoked = ask(&server, "/api/v1/streaming/user", "gone").await;
    assert_eq!(revoked.status(), "401");
    server.change_faults(|faults| faults.streams.refused = true);
    let refused = ask(&server, "/api/v1/streaming/user", "t").await;
    assert_eq!(refused.status(), "503");
}

#[tokio::test]
async fn heartbeats_come_while_nothing_happens() {
    let (server, _) = plain().await;
    server.change_faults(|faults| faults.streams.heartbeat_ms = 200);
    let mut stream = Sse::open(&server, "user", "t").await;
    for _ in 0..6 {
        assert!(!stream.read().await);
    }
    assert!(stream.text.contains("text/event-stream"));
    assert!(
        stream.text.matches(":thump\n").count() >= 3,
        "{}",
        stream.text
    );
}

/// What a stream with these faults brings in ten seconds, whether it broke,
/// and what was published meanwhile.
async fn spoilt(streams: StreamsConfig) -> (Vec<String>, bool, Vec<String>) {
    let mut world = WorldConfig::punctual(20.0);
    world.faults.streams = streams;
    let (server, clock) = with(world).await;
    let connected_ms = clock.now_ms();
    let mut stream = Sse::open(&server, "user", "t").await;
    let mut broke = false;
    for _ in 0..5 {
        clock.set(clock.now_ms() + 2_000);
        broke = broke || stream.read().await;
    }
    let published = appeared(&server, &Timeline::Home, connected_ms);
    server.shutdown().await;
    (stream.ids("update"), broke, published)
}

#[tokio::test]
async fn connections_break_after_so_many_events() {
    let (sent, broke, published) = spoilt(StreamsConfig {
        drop_after_events: Some(7),
        ..StreamsConfig::default()
    })
    .await;
    assert_eq!((sent.as_slice(), broke), (&published[..7], true));
}

#[tokio::test]
async fn events_are_lost_repeated_and_delayed() {
    let (sent, broke, published) = spoilt(StreamsConfig {
        lost_share: 0.3,
        ..StreamsConfig::default()
    })
    .await;
    let share = sent.len() as f64 / published.len() as f64;
    assert!(!broke && (0.55..0.85).contains(&share), "{share}");
    let (sent, _, published) = spoilt(StreamsConfig {
        repeated_share: 0.3,
        ..StreamsConfig::default()
    })
    .await;
    let share = sent.len() as f64 / published.len() as f64;
    assert!((1.15..1.45).contains(&share), "{share}");
    let mut once = sorted(sent);
    once.dedup();
    assert_eq!(once, sorted(published));
    let (sent, _, published) = spoilt(StreamsConfig {
        delay_ms: SpanMs::new(0, 3_000),
        ..StreamsConfig::default()
    })
    .await;
    assert!(sent.len() < published.len(), "some are still on their way");
    assert!(sent.len() > published.len() / 2);
    assert!(!published.starts_with(&sent), "out of order");
}

#[tokio::test]
async fn open_streams_can_be_broken_and_end_with_the_server() {
    let (server, _) = plain().await;
    let mut stream = Sse::open(&server, "user", "t").await;
    assert!(!stream.read().await);
    server.drop_streams();
    assert!(stream.read().await);
    let mut stream = Sse::open(&server, "user", "t").await;
    assert!(!stream.read().await, "a new one lives");
    server.change_faults(|faults| {
        faults.revocations.push(Revocation {
            token: "t".into(),
            after_ms: 0,
        });
    });
    assert!(stream.read().await, "revoked");
    let mut stream = Sse::open(&server, "user", "u").await;
    server.shutdown().await;
    assert!(stream.read().await);
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn web_socket(server: &SimServer, query: &str) -> Socket {
    let url = format!("ws://{}/api/v1/streaming{query}", server.address());
    connect_async(url).await.expect("connects").0
}

/// What comes until nothing does for a while.
async fn messages(socket: &mut Socket) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    while let Ok(Some(Ok(message))) = timeout(Duration::from_millis(150), socket.next()).await {
        if let Message::Text(text) = message {
            all.push(serde_json::from_str(&text).expect("JSON"));
        }
    }
    all
}

#[tokio::test]
async fn a_web_socket_names_its_stream_with_each_event() {
    let (server, clock) = plain().await;
    let connected_ms = clock.now_ms();
    let mut socket = web_socket(&server, "?access_token=t&stream=hashtag&tag=tide").await;
    clock.set(connected_ms + 3_000);
    let got = messages(&mut socket).await;
    let ids = got.iter().map(|message| {
        assert_eq!(message["stream"], serde_json::json!(["hashtag", "tide"]));
        assert_eq!(message["event"], "update");
        id_of(message["payload"].as_str().expect("text"))
    });
    let published = appeared(&server, &Timeline::Tag("tide".into()), connected_ms);
    assert!(published.len() > 30);
    assert_eq!(sorted(ids.collect()), sorted(published));
    server.drop_streams();
    let end = timeout(Duration::from_secs(1), socket.next()).await;
    assert!(matches!(end, Ok(None | Some(Err(_)))), "{end:?}");
}

#[tokio::test]
async fn web_sockets_take_a_token_from_three_places() {
    let (server, _) = plain().await;
    let url = format!("ws://{}/api/v1/streaming?stream=user", server.address());
    assert!(connect_async(url.as_str()).await.is_err());
    for (header, value) in [
        ("authorization", "Bearer t"),
        ("sec-websocket-protocol", "t"),
    ] {
        let mut request = url.as_str().into_client_request().expect("a request");
        let value = value.parse().expect("a value");
        request.headers_mut().insert(header, value);
        assert!(connect_async(request).await.is_ok(), "{header}");
    }
    let nothing = format!("{url}ing&access_token=t");
    assert!(connect_async(nothing).await.is_err());
    server.change_faults(|faults| faults.streams.refused = true);
    assert!(
        connect_async(format!("{url}&access_token=t"))
            .await
            .is_err()
    );
}
