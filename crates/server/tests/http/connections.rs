//! How many clients there may be at a time.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use axum::{Router, routing::get};
use driftline_server::http::serve;
use tokio::{net::TcpListener, sync::oneshot};

/// One client too many waits until another has gone.
#[tokio::test(flavor = "multi_thread")]
async fn clients_wait_for_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = Router::new().route("/", get(async || "here"));
    let serving = tokio::spawn(serve(listener, router, 2, async {
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
