//! Connections over real sockets: how many there may be, when they end, and how serving ends.
#![allow(clippy::unwrap_used)]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    routing::{get, post},
};
use driftline_api::transport::{Limits, serve};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};

const HOUR: Duration = Duration::from_secs(3_600);

/// Runs a client of a server that reads bodies.
async fn with_client(limits: Limits, client: impl FnOnce(SocketAddr) + Send + 'static) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(async || "here").post(async |body: String| body));
    let serving = tokio::spawn(serve(listener, router, limits, async {
        let _ = stopped.await;
    }));
    tokio::task::spawn_blocking(move || client(address))
        .await
        .unwrap();
    drop(stop);
    serving.await.unwrap().unwrap();
}

/// A connection on which that was sent.
fn connect(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    let timeout = Some(Duration::from_secs(90));
    client.set_read_timeout(timeout).unwrap();
    client.write_all(sent).unwrap();
    client
}

fn read_to_the_end(mut client: TcpStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it is closed");
    answer
}

/// Begins a request whose body is to have 6,000 bytes.
fn begin(address: SocketAddr, body: &[u8]) -> TcpStream {
    let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6000\r\n\r\n";
    connect(address, &[head, body].concat())
}

/// One client too many waits until another has gone.
#[tokio::test(flavor = "multi_thread")]
async fn clients_wait_for_room() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    with_client(limits, |address| {
        let idle = [(); 2].map(|()| connect(address, b""));
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let mut third = connect(address, request);
        let soon = Some(Duration::from_millis(300));
        third.set_read_timeout(soon).unwrap();
        let mut answer = [0];
        assert!(third.read(&mut answer).is_err(), "{answer:?}");
        drop(idle);
        let timeout = Some(Duration::from_secs(90));
        third.set_read_timeout(timeout).unwrap();
        assert!(read_to_the_end(third).ends_with("here"));
    })
    .await;
}

/// Connections without a complete header are ended, at the beginning and between requests, both if
/// a part of one was sent and if not.
#[tokio::test(flavor = "multi_thread")]
async fn silence_ends() {
    let limits = Limits {
        silence: Duration::from_secs(1),
        ..Limits::default()
    };
    with_client(limits, |address| {
        for sent in [
            "",
            "P",
            "GET / HTTP/1.1\r\nhost",
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            let answer = read_to_the_end(connect(address, sent.as_bytes()));
            let is_whole = sent.ends_with("\r\n\r\n");
            assert_eq!(answer.ends_with("here"), is_whole, "{sent}");
        }
    })
    .await;
}

/// A connection ends if its body stops, although the limit for the whole body is an hour.
#[tokio::test(flavor = "multi_thread")]
async fn silent_bodies_end() {
    let limits = Limits {
        silence: Duration::from_secs(1),
        body: HOUR,
        ..Limits::default()
    };
    with_client(limits, |address| {
        for body in ["", "a"] {
            let answer = read_to_the_end(begin(address, body.as_bytes()));
            assert!(!answer.contains("200 OK"), "{answer}");
        }
    })
    .await;
}

/// A connection ends if its body takes too long, although bytes keep coming. A whole body is answered.
#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_end() {
    let limits = Limits {
        silence: HOUR,
        body: Duration::from_secs(3),
        ..Limits::default()
    };
    with_client(limits, |address| {
        let mut slow = begin(address, b"a");
        let mut sent = 0;
        while slow.write_all(b"a").is_ok() {
            sent += 1;
            assert!(sent < 1_200, "a byte now and then keeps the connection");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut whole = begin(address, &[b'a'; 6_000]);
        let mut answer = [0; 15];
        whole.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    })
    .await;
}

#[tokio::test]
async fn requests_under_way_are_answered_before_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (begun, is_answered) = (Arc::<Notify>::default(), Arc::<AtomicBool>::default());
    let (begins, answers) = (begun.clone(), is_answered.clone());
    let slow = async move || {
        begins.notify_one();
        tokio::time::sleep(Duration::from_millis(300)).await;
        answers.store(true, Ordering::SeqCst);
        "done"
    };
    let router = Router::new().route("/", post(slow));
    let server = tokio::spawn(serve(listener, router, Limits::default(), async move {
        begun.notified().await;
    }));
    let request = b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let asking = tokio::task::spawn_blocking(move || read_to_the_end(connect(address, request)));
    server.await.unwrap().unwrap();
    assert!(is_answered.load(Ordering::SeqCst));
    assert!(asking.await.unwrap().ends_with("done"));
}
