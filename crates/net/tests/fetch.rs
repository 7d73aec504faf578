//! The client against a server on loopback. Most of its behaviour is tested
//! where it is used, in `driftline-upstream`.

use std::sync::{Arc, Mutex};

use driftline_net::{
    Authorization, FetchErrorKind, Http, OpenAnswer, Opened, Options, testing::http_client,
};
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use url::Url;

const SECRET: &str = "tOkEn-0123456789";

/// A server that redirects `/old` to `/new` and breaks off each body.
async fn server() -> (Url, Arc<Mutex<Vec<String>>>) {
    server_that_redirects_to("/new").await
}

async fn server_that_redirects_to(location: &str) -> (Url, Arc<Mutex<Vec<String>>>) {
    let location = location.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.expect("a request"));
            }
            let request = String::from_utf8(request).expect("a text");
            let answer = if request.starts_with("GET /old") {
                format!("HTTP/1.1 307 X\r\nLocation: {location}\r\nConnection: close\r\n\r\n")
            } else {
                format!(
                    "HTTP/1.1 200 OK\r\nX-Repeated: {SECRET}\r\nContent-Length: 9\r\nConnection: close\r\n\r\n[]"
                )
            };
            seen.lock().expect("no panic").push(request);
            stream.write_all(answer.as_bytes()).await.expect("sent");
        }
    });
    let url = Url::parse(&format!("http://127.0.0.1:{port}/old?token=x")).expect("a URL");
    (url, requests)
}

/// An authorization that holds for one address.
fn signed(url: &Url) -> Authorization {
    Ok(Some(HeaderValue::from_str(&format!(
        "{SECRET} {}",
        url.path()
    ))?))
}

#[tokio::test]
async fn each_redirect_is_authorized_again() {
    let (url, requests) = server().await;
    let _ = http_client().fetch(url, signed).await;
    let requests = requests.lock().expect("no panic");
    assert_eq!(requests.len(), 2);
    for (request, path) in requests.iter().zip(["/old", "/new"]) {
        let header = format!("\r\nauthorization: {SECRET} {path}\r\n");
        assert!(request.contains(&header), "{request}");
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_authorized_is_not_sent() {
    let (url, requests) = server().await;
    let error = http_client()
        .fetch(url, |_: &Url| Err("no key".into()))
        .await;
    let error = error.expect_err("it is not sent");
    assert!(matches!(error.kind, FetchErrorKind::Authorization(_)));
    assert!(error.to_string().ends_with("/old: no key"), "{error}");
    assert!(requests.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn a_broken_body_leaves_its_headers_and_shows_no_secret() {
    let (url, _) = server().await;
    let error = http_client()
        .fetch(url, signed)
        .await
        .expect_err("it breaks off");
    assert!(matches!(error.kind, FetchErrorKind::EndedEarly { .. }));
    assert!(error.location.ends_with("/new"), "{error}");
    let headers = error.headers.as_deref().expect("the head came");
    assert_eq!(headers["x-repeated"], SECRET);
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn an_open_answer_is_named_after_the_first_address() {
    let (url, _) = server().await;
    let http = http_client();
    let opened = http.open(url, HeaderMap::new(), StatusCode::OK, signed);
    let Opened::Stream(mut answer) = opened.await.expect("an answer") else {
        panic!("it is open");
    };
    let shown = format!("{answer:?}");
    assert!(!shown.contains(SECRET), "{shown}");
    let error = end_of(&mut answer).await;
    assert!(error.contains("/old: the answer ended early"), "{error}");
}

#[tokio::test]
async fn what_is_public_may_be_on_another_server_that_is_checked() {
    let (other, asked_there) = server_that_redirects_to("/none").await;
    let there = other.join("/new").expect("a URL");
    let (url, asked_here) = server_that_redirects_to(there.as_str()).await;
    let http = http_client();
    let open = || http.open_public(url.clone(), HeaderMap::new(), StatusCode::OK);
    assert!(matches!(open().await, Ok(Opened::Stream(_))));
    for (requests, path) in [(&asked_here, "/old"), (&asked_there, "/new")] {
        let requests = requests.lock().expect("no panic");
        assert_eq!(requests.len(), 1);
        assert!(requests[0].starts_with(&format!("GET {path}")));
        assert!(!requests[0].contains("authorization"), "{}", requests[0]);
    }

    // Only the first server may be in a private network.
    let strict = Http::new(Options::default()).expect("a client");
    let strict = strict.trusting(&url).expect("a client");
    let opened = strict.open_public(url, HeaderMap::new(), StatusCode::OK);
    let error = opened.await.expect_err("it is private");
    assert!(error.to_string().contains("private address"), "{error}");
    assert_eq!(asked_there.lock().expect("no panic").len(), 1);
}

/// The error at which an answer ends.
async fn end_of(answer: &mut OpenAnswer) -> String {
    loop {
        match answer.chunk().await {
            Ok(chunk) => assert!(chunk.is_some(), "it breaks off"),
            Err(error) => return error.to_string(),
        };
    }
}
