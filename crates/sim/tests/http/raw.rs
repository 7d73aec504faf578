//! Requests over plain sockets.

use std::time::Duration;

use driftline_sim::http::{Clock, ServerConfig, SetClock, SimServer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// An answer as its bytes came.
pub(crate) struct Raw {
    pub(crate) text: String,
}

impl Raw {
    pub(crate) fn status(&self) -> &str {
        self.text.get(9..12).unwrap_or("")
    }

    pub(crate) fn head(&self) -> &str {
        self.text.split("\r\n\r\n").next().unwrap_or("")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head().lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn body(&self) -> &str {
        self.text
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.body()).expect("JSON")
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let page = self.json();
        let ids = page.as_array().expect("a list").iter();
        ids.map(|post| post["id"].as_str().expect("text").to_owned())
            .collect()
    }

    pub(crate) fn whole(&self) -> bool {
        let length: usize = self
            .header("content-length")
            .map_or(0, |v| v.parse().expect("n"));
        self.body().len() == length
    }
}

pub(crate) async fn ask(server: &SimServer, path: &str, token: &str) -> Raw {
    ask_as(server, path, &format!("Bearer {token}")).await
}

/// Asks with any `Authorization` header.
pub(crate) async fn ask_as(server: &SimServer, path: &str, authorization: &str) -> Raw {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n",
        server.address()
    );
    send(server, &request).await
}

/// Sends a request as given and reads until the connection ends.
pub(crate) async fn send(server: &SimServer, request: &str) -> Raw {
    let mut socket = TcpStream::connect(server.address())
        .await
        .expect("connects");
    socket.write_all(request.as_bytes()).await.expect("sends");
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 65_536];
    // A reset ends an answer as the end of the stream does.
    while let Ok(read @ 1..) = timeout(TIMEOUT, socket.read(&mut chunk))
        .await
        .expect("something comes, or the end")
    {
        bytes.extend_from_slice(&chunk[..read]);
    }
    Raw {
        text: String::from_utf8(bytes).expect("text"),
    }
}

pub(crate) const HOME: &str = "/api/v1/timelines/home?limit=40";

/// A server whose clock is frozen a minute after its start, and the clock.
pub(crate) async fn frozen_server(config: ServerConfig) -> (SimServer, SetClock) {
    let clock = SetClock::new(config.world.start_ms);
    let server = SimServer::start(config, 1, Clock::Set(clock.clone()))
        .await
        .expect("starts");
    clock.set(clock.now_ms() + 60_000);
    (server, clock)
}

const TIMEOUT: Duration = Duration::from_secs(8);
