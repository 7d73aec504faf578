//! How many clients there may be at a time.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use axum::{Router, routing::get};
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
