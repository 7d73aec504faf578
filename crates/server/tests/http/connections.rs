//! How many clients there may be at a time.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use axum::{
    Router,
    routing::{get, post},
};
use driftline_api::transport::{Limits, serve};
use tokio::{net::TcpListener, sync::oneshot};

/// One client too many waits until another has gone.
#[tokio::test(flavor = "multi_thread")]
async fn clients_wait_for_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(async || "here"));
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let serving = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    let asked = tokio::task::spawn_blocking(move || {
        let idle = [(); 2].map(|()| TcpStream::connect(address).unwrap());
        let mut third = TcpStream::connect(address).unwrap();
        third
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .unwrap();
        third
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let mut answer = String::new();
        assert!(third.read_to_string(&mut answer).is_err(), "{answer}");
        drop(idle);
        third
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        third.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(asked.await.unwrap().ends_with("here"));
    drop(stop);
    serving.await.unwrap().unwrap();
}

/// Who sends no whole header is ended, at the beginning and between requests, with or without a
/// part of one.
#[tokio::test(flavor = "multi_thread")]
async fn silence_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(async || "here"));
    let limits = Limits {
        silence: Duration::from_millis(100),
        ..Limits::default()
    };
    let serving = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    let ended = tokio::task::spawn_blocking(move || {
        for sent in [
            "",
            "P",
            "GET / HTTP/1.1\r\nhost",
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(sent.as_bytes()).unwrap();
            client
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(
                answer.ends_with("here"),
                sent.ends_with("\r\n\r\n"),
                "{sent}"
            );
        }
    });
    ended.await.unwrap();
    drop(stop);
    serving.await.unwrap().unwrap();
}

/// A connection ends if its body stops, although the limit for the whole body is an hour.
#[tokio::test(flavor = "multi_thread")]
async fn silent_bodies_end() {
    let limits = Limits {
        silence: Duration::from_millis(200),
        body: Duration::from_secs(3_600),
        ..Limits::default()
    };
    with_bodies(limits, |address| {
        for body in ["", "a"] {
            let mut silent = open(address, body.as_bytes());
            let mut answer = String::new();
            silent.read_to_string(&mut answer).expect("it is closed");
            assert!(!answer.contains("200 OK"), "{answer}");
        }
    })
    .await;
}

/// A connection ends if its body takes too long, although bytes keep coming. A whole body is answered.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_end() {
    let limits = Limits {
        silence: Duration::from_secs(3_600),
        body: Duration::from_millis(500),
        ..Limits::default()
    };
    with_bodies(limits, |address| {
        let mut slow = open(address, b"a");
        let mut sent = 0;
        while slow.write_all(b"a").is_ok() {
            sent += 1;
            assert!(sent < 400, "a byte now and then keeps the connection");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut whole = open(address, &[b'a'; 6_000]);
        let mut answer = [0; 15];
        whole.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    })
    .await;
}

/// Runs a client of a server that reads bodies.
async fn with_bodies(limits: Limits, client: impl FnOnce(SocketAddr) + Send + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", post(async |body: String| body));
    let serving = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    let ended = tokio::task::spawn_blocking(move || client(address));
    ended.await.unwrap();
    drop(stop);
    serving.await.unwrap().unwrap();
}

/// Begins a request whose body is to have 6,000 bytes.
fn open(address: SocketAddr, body: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    let timeout = Some(Duration::from_secs(20));
    client.set_read_timeout(timeout).unwrap();
    let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6000\r\n\r\n";
    client.write_all(&[head, body].concat()).unwrap();
    client
}
