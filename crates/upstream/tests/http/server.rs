//! A server on loopback that sends given bytes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use driftline_core::{
    answer::{Failure, Page, PageRequest},
    api::Api,
};
use driftline_net::{Http, Options};
use driftline_upstream::{Credential, Timeline, Upstream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A credential of OAuth 1.0a.
pub(crate) const OAUTH: &str =
    "consumer_key=ck\nconsumer_secret=cs\naccess_token=7-at\naccess_token_secret=ts";

/// A page of two posts.
pub(crate) const PAGE: &str = r#"[{"id":"2","created_at":"2025-08-17T18:46:55.745Z","visibility":"public","account":{"id":"7","acct":"x"}},{"id":"1","account":{"id":"7"}}]"#;
pub(crate) const JSON: &str = "Content-Type: application/json; charset=utf-8";

/// What the server does once it has read a request.
pub(crate) enum Reply {
    /// Sends and closes.
    Bytes(Vec<u8>),
    /// Sends, then keeps the connection open in silence.
    BytesThenSilence(Vec<u8>),
    /// Sends, then one space every 20 ms for ever.
    BytesThenDrip(Vec<u8>),
}

pub(crate) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that asks `reply` what to do with the head of each request.
    pub(crate) async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let reply = Arc::new(reply);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                tokio::spawn(async move { serve(stream, &*reply, &seen).await });
            }
        });
        Self {
            port,
            requests,
            task,
        }
    }

    /// A server that sends the same bytes to everyone.
    pub(crate) async fn sending(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| Reply::Bytes(bytes.clone())).await
    }

    /// A server that sends at once to whoever connects, and closes.
    pub(crate) async fn start_at_once(bytes: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // Reading first keeps the close from turning into a reset.
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(bytes.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self {
            port,
            requests: Arc::default(),
            task,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The heads of the requests that came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }

    /// Asserts that the first request held a text, in lower case.
    pub(crate) fn assert_first_sent(&self, text: &str) {
        let request = self.requests().remove(0).to_ascii_lowercase();
        assert!(request.contains(text), "{request}");
    }

    /// A client of this server with short timeouts.
    pub(crate) fn client(&self) -> Upstream {
        self.client_with(options(), None)
    }

    /// A client that speaks this API, with the credential in a text; an empty
    /// one is none.
    pub(crate) fn upstream(&self, api: Api, credential: &str) -> Upstream {
        let credential = match credential {
            "" => Credential::None,
            text => Credential::parse(text).expect("a credential"),
        };
        let address = self.address().parse().expect("an address");
        let http = Http::new(options()).expect("a client");
        Upstream::new(api, http, address, credential).expect("a client")
    }

    /// What was asked for: the targets of the requests that came.
    pub(crate) fn targets(&self) -> Vec<String> {
        let target = |request: &String| request.split(' ').nth(1).unwrap_or_default().to_owned();
        self.requests().iter().map(target).collect()
    }

    pub(crate) fn client_with(&self, options: Options, token: Option<&str>) -> Upstream {
        client(&self.address(), options, token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn client(address: &str, options: Options, token: Option<&str>) -> Upstream {
    let token = token.map(|token| token.to_owned().into());
    Upstream::new(
        Api::Mastodon,
        Http::new(options).expect("a client"),
        address.parse().expect("an address"),
        token.map_or(Credential::None, Credential::Bearer),
    )
    .expect("a token")
}

/// Reads the first page of the home timeline.
pub(crate) async fn home(client: &Upstream) -> Result<Page, Failure> {
    client.page(&Timeline::Home, &first_page()).await
}

pub(crate) fn first_page() -> PageRequest {
    first_page_of(40)
}

pub(crate) fn first_page_of(limit: u16) -> PageRequest {
    PageRequest {
        limit,
        ..PageRequest::default()
    }
}

/// The failure of a page from a server that sends these bytes.
pub(crate) async fn failure_of(bytes: impl Into<Vec<u8>>) -> Failure {
    let server = Server::sending(bytes).await;
    home(&server.client()).await.expect_err("a failure")
}

/// The positions of a page's posts.
pub(crate) fn ids(page: &Page) -> Vec<&str> {
    page.listed.iter().map(|l| l.position.as_str()).collect()
}

/// Private addresses allowed, short timeouts.
pub(crate) fn options() -> Options {
    Options {
        allow_private: true,
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_millis(500),
        total_timeout: Duration::from_secs(10),
        ..Options::default()
    }
}

/// A whole answer: the status line, the header lines given, `Content-Length`
/// and the body.
pub(crate) fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = head(status, headers);
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The head of an answer alone.
pub(crate) fn head(status: &str, headers: &[&str]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

async fn serve(
    mut stream: TcpStream,
    reply: &(dyn Fn(&str) -> Reply + Send + Sync),
    seen: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).ok()?;
    seen.lock().expect("no panic").push(request.clone());
    match reply(&request) {
        Reply::Bytes(bytes) => {
            stream.write_all(&bytes).await.ok()?;
            stream.shutdown().await.ok()?;
        }
        Reply::BytesThenSilence(bytes) => {
            stream.write_all(&bytes).await.ok()?;
            std::future::pending::<()>().await;
        }
        Reply::BytesThenDrip(bytes) => {
            stream.write_all(&bytes).await.ok()?;
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                stream.write_all(b" ").await.ok()?;
            }
        }
    }
    Some(())
}
