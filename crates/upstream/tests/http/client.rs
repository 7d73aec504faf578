//! The client against a server that sends exact bytes.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use crate::server::{Reply, Server, answer, client, head, options};
use driftline_core::{
    answer::{Abilities, Failure, FailureKind, LookUp, Page, PageRequest, Throttle},
    upstream_id::UpstreamId,
};
use driftline_upstream::{Http, Mastodon, Options, Timeline, TokenError};

const PAGE: &str = r#"[{"id":"2","created_at":"2025-08-17T18:46:55.745Z","visibility":"public","account":{"id":"7","acct":"x"}},{"id":"1","account":{"id":"7"}}]"#;
const JSON: &str = "Content-Type: application/json; charset=utf-8";

async fn home(client: &Mastodon) -> Result<Page, Failure> {
    client.page(&Timeline::Home, &first_page()).await
}

fn first_page() -> PageRequest {
    PageRequest {
        limit: 40,
        ..PageRequest::default()
    }
}

async fn failure_of(bytes: impl Into<Vec<u8>>) -> Failure {
    let server = Server::sending(bytes).await;
    home(&server.client()).await.expect_err("a failure")
}

fn ids(page: &Page) -> Vec<&str> {
    page.listed.iter().map(|l| l.position.as_str()).collect()
}

#[tokio::test]
async fn a_good_page_with_its_facts() {
    let server = Server::sending(answer(
        "200 OK",
        &[
            JSON,
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "X-RateLimit-Limit: 300",
            "X-RateLimit-Remaining: 299",
            "X-RateLimit-Reset: 2025-08-17T21:00:00.777630Z",
        ],
        PAGE,
    ))
    .await;
    let client = server.client_with(options(), Some("secret-token"));
    let page = home(&client).await.expect("a page");
    assert_eq!(ids(&page), ["2", "1"]);
    assert_eq!(page.listed[0].post.created_at_ms, Some(1_755_456_415_745));
    let headers = page.headers;
    assert_eq!(headers.date_ms, Some(784_111_777_000));
    assert_eq!(headers.body_bytes, PAGE.len() as u64);
    assert!(headers.sent_at_ms <= headers.received_at_ms);
    assert!((0..10_000).contains(&headers.round_trip_ms));
    assert_eq!(
        headers.throttle,
        Some(Throttle {
            limit: 300,
            remaining: 299,
            reset_at_ms: 1_755_464_400_777,
        })
    );

    let request = server.requests().remove(0).to_ascii_lowercase();
    assert!(request.starts_with("get /api/v1/timelines/home?limit=40 http/1.1\r\n"));
    for header in [
        "authorization: bearer secret-token\r\n",
        "accept: application/json\r\n",
        "user-agent: driftline/",
    ] {
        assert!(request.contains(header), "{request}");
    }
    assert!(request.contains("gzip") && request.contains("br"));
}

#[tokio::test]
async fn a_reset_in_epoch_seconds_and_malformed_headers() {
    let server = Server::sending(answer(
        "200 OK",
        &[
            "x-rate-limit-limit: 900",
            "x-rate-limit-remaining: 0",
            "x-rate-limit-reset: 1755464400",
            "Date: yesterday",
            "Bad Header: x",
        ],
        "[]",
    ))
    .await;
    let headers = home(&server.client()).await.expect("a page").headers;
    assert_eq!(headers.date_ms, None);
    assert_eq!(
        headers.throttle,
        Some(Throttle {
            limit: 900,
            remaining: 0,
            reset_at_ms: 1_755_464_400_000,
        })
    );
    let server = Server::sending(answer(
        "200 OK",
        &[
            "X-RateLimit-Limit: many",
            "X-RateLimit-Remaining: \u{e9}",
            "X-RateLimit-Reset: soon",
        ],
        "[]",
    ))
    .await;
    let headers = home(&server.client()).await.expect("a page").headers;
    assert_eq!(headers.throttle, None);
}

#[tokio::test]
async fn every_timeline_asks_for_its_path_and_bounds() {
    let server = Server::sending(answer("200 OK", &[JSON], "[]")).await;
    let client = server.client();
    for (timeline, request, target) in [
        ("public", first_page(), "/api/v1/timelines/public?limit=40"),
        (
            "local",
            PageRequest {
                since_id: Some("5".into()),
                max_id: Some("9&x".into()),
                min_id: None,
                limit: 7,
            },
            "/api/v1/timelines/public?local=true&limit=7&since_id=5&max_id=9%26x",
        ),
        (
            "tag:猫",
            PageRequest {
                min_id: Some("5".into()),
                limit: 1000,
                ..PageRequest::default()
            },
            "/api/v1/timelines/tag/%E7%8C%AB?limit=40&min_id=5",
        ),
        (
            "list:3",
            PageRequest::default(),
            "/api/v1/timelines/list/3?limit=1",
        ),
        (
            "account:4",
            first_page(),
            "/api/v1/accounts/4/statuses?limit=40",
        ),
        (
            "mentions",
            first_page(),
            "/api/v1/notifications?types[]=mention&limit=40",
        ),
    ] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        client.page(&timeline, &request).await.expect("a page");
        let sent = server.requests().pop().expect("a request");
        assert_eq!(sent.split(' ').nth(1), Some(target));
        assert_eq!(
            client.abilities(&timeline),
            Abilities {
                page_limit: 40,
                min_id: true
            }
        );
    }
}

#[tokio::test]
async fn mentions_are_listed_by_their_notifications() {
    let body = r#"[{"id":"90","type":"mention","status":{"id":"2","account":{"id":"7"}}}]"#;
    let server = Server::sending(answer("200 OK", &[JSON], body)).await;
    let page = server
        .client()
        .page(&Timeline::Mentions, &first_page())
        .await
        .expect("a page");
    assert_eq!(ids(&page), ["90"]);
    assert_eq!(page.listed[0].post.id, "2".into());
}

#[tokio::test]
async fn compressed_bodies() {
    for (encoding, body) in [("gzip", gzip(PAGE.as_bytes())), ("br", br(PAGE.as_bytes()))] {
        let encoding = format!("Content-Encoding: {encoding}");
        let server = Server::sending(answer("200 OK", &[JSON, &encoding], &body)).await;
        let page = home(&server.client()).await.expect("a page");
        assert_eq!(ids(&page), ["2", "1"]);

        let cut = &body[..body.len() - 9];
        let failure = failure_of(answer("200 OK", &[JSON, &encoding], cut)).await;
        assert_eq!(
            failure.kind,
            FailureKind::Truncated,
            "{encoding}: {failure}"
        );
    }
    let noise = answer("200 OK", &["Content-Encoding: gzip"], "[no gzip at all]");
    let failure = failure_of(noise).await;
    assert_eq!(failure.kind, FailureKind::NotJson, "{failure}");
}

#[tokio::test]
async fn compression_bombs_are_left_at_the_cap() {
    let bomb = vec![b' '; 64 * 1024 * 1024];
    for (encoding, body) in [("gzip", gzip(&bomb)), ("br", br(&bomb))] {
        assert!(body.len() < 1024 * 1024);
        let encoding = format!("Content-Encoding: {encoding}");
        let failure = failure_of(answer("200 OK", &[JSON, &encoding], &body)).await;
        assert_eq!(failure.kind, FailureKind::TooLarge, "{encoding}: {failure}");
    }
}

#[tokio::test]
async fn bodies_up_to_the_cap_and_one_byte_more() {
    for (padding, fits) in [(0, true), (1, false)] {
        let body = format!("{PAGE}{}", " ".repeat(padding));
        let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let mut unannounced = head("200 OK", &["Transfer-Encoding: chunked"]);
        unannounced.extend_from_slice(chunked.as_bytes());
        for bytes in [answer("200 OK", &[], &body), unannounced] {
            let server = Server::sending(bytes).await;
            let options = Options {
                max_body_bytes: PAGE.len(),
                ..options()
            };
            let outcome = home(&server.client_with(options, None)).await;
            match outcome {
                Ok(page) => assert!(fits && page.listed.len() == 2),
                Err(failure) => {
                    assert!(!fits, "{failure}");
                    assert_eq!(failure.kind, FailureKind::TooLarge);
                    assert!(failure.message.contains("max_body_bytes"), "{failure}");
                }
            }
        }
    }
}

#[tokio::test]
async fn bodies_that_are_no_page() {
    for (bytes, kind, said) in [
        (
            answer(
                "200 OK",
                &["Content-Type: text/html"],
                "<!DOCTYPE html><title>Sign in</title>",
            ),
            FailureKind::NotJson,
            "HTML page (“Sign in”)",
        ),
        (
            answer("200 OK", &[JSON], "<html><body>Maintenance"),
            FailureKind::NotJson,
            "Maintenance",
        ),
        (
            answer("200 OK", &["Content-Type: text/plain"], "[proxy] no route"),
            FailureKind::NotJson,
            "text/plain",
        ),
        (
            answer(
                "200 OK",
                &[JSON],
                r#"{"error":"This method requires a user"}"#,
            ),
            FailureKind::ErrorBody,
            "This method requires a user",
        ),
        (
            answer("200 OK", &[JSON], r#"{"id":"1"}"#),
            FailureKind::BadJson,
            "not a list of posts",
        ),
        (
            answer("200 OK", &[JSON], "[{]"),
            FailureKind::BadJson,
            "line 1 column",
        ),
        (
            answer("200 OK", &[JSON], r#"[{"id":null}]"#),
            FailureKind::BadId,
            "item 1",
        ),
        (
            answer("200 OK", &[JSON], &PAGE[..40]),
            FailureKind::Truncated,
            "ends early",
        ),
        (
            answer("200 OK", &[JSON], ""),
            FailureKind::Truncated,
            "empty",
        ),
    ] {
        let failure = failure_of(bytes).await;
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(said), "{failure}");
        assert!(
            failure.message.contains("/api/v1/timelines/home: "),
            "{failure}"
        );
    }
    // A list that is declared to be something else is a list all the same.
    let server = Server::sending(answer("200 OK", &["Content-Type: text/plain"], PAGE)).await;
    assert_eq!(
        home(&server.client()).await.expect("a page").listed.len(),
        2
    );
}

#[tokio::test]
async fn bodies_that_end_early() {
    let mut announced = head(
        "200 OK",
        &[JSON, &format!("Content-Length: {}", PAGE.len() + 1)],
    );
    announced.extend_from_slice(PAGE.as_bytes());
    let mut chunked = head("200 OK", &[JSON, "Transfer-Encoding: chunked"]);
    chunked.extend_from_slice(format!("{:x}\r\n{PAGE}\r\n", PAGE.len()).as_bytes());
    for bytes in [announced, chunked] {
        let failure = failure_of(bytes).await;
        assert_eq!(failure.kind, FailureKind::Truncated, "{failure}");
    }
}

#[tokio::test]
async fn connections_that_break_before_an_answer() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: app",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let failure = failure_of(bytes).await;
        assert_eq!(failure.kind, FailureKind::Unreachable, "{bytes}: {failure}");
    }
    let server = Server::sending("").await;
    let closed = server.client();
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let failure = home(&closed).await.expect_err("no listener");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(
        failure.message.contains("check that the server is up"),
        "{failure}"
    );

    let unknown = client("http://no-such-host.invalid", options(), None);
    let failure = home(&unknown).await.expect_err("no such name");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.message.contains("cannot be resolved"), "{failure}");
}

#[tokio::test]
async fn silence_and_dripping_end_in_time() {
    let mut some = head("200 OK", &[JSON, "Content-Length: 100000"]);
    some.extend_from_slice(b"[");
    let long = Duration::from_secs(60);
    let short = Duration::from_millis(200);
    type MakeReply = fn(Vec<u8>) -> Reply;
    let cases: [(MakeReply, Duration, Duration); 3] = [
        (|_| Reply::BytesThenSilence(Vec::new()), short, long),
        (Reply::BytesThenSilence, short, long),
        (Reply::BytesThenDrip, long, short),
    ];
    for (reply, read_timeout, total_timeout) in cases {
        let bytes = some.clone();
        let server = Server::start(move |_| reply(bytes.clone())).await;
        let options = Options {
            read_timeout,
            total_timeout,
            ..options()
        };
        let began = Instant::now();
        let failure = home(&server.client_with(options, None))
            .await
            .expect_err("too slow");
        assert_eq!(failure.kind, FailureKind::TimedOut, "{failure}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_not_waited_for() {
    let bytes = head("200 OK", &[JSON, "Content-Length: 8388609"]);
    let server = Server::start(move |_| Reply::BytesThenSilence(bytes.clone())).await;
    let failure = home(&server.client()).await.expect_err("too large");
    assert_eq!(failure.kind, FailureKind::TooLarge, "{failure}");
}

#[tokio::test]
async fn statuses_that_are_no_page() {
    for (status, kind) in [
        ("401 Unauthorized", FailureKind::Unauthorized),
        ("403 Forbidden", FailureKind::Unauthorized),
        ("404 Not Found", FailureKind::NotFound),
        ("410 Gone", FailureKind::NotFound),
        ("422 Unprocessable Content", FailureKind::Refused),
        ("206 Partial Content", FailureKind::UnexpectedStatus),
        ("304 Not Modified", FailureKind::UnexpectedStatus),
        ("302 Found", FailureKind::UnexpectedStatus),
        ("500 Oh", FailureKind::ServerError),
        ("502 Bad Gateway", FailureKind::ServerError),
        ("530 Cloudflare", FailureKind::ServerError),
    ] {
        let failure = failure_of(answer(status, &[JSON], "[]")).await;
        assert_eq!(failure.kind, kind, "{status}");
        assert!(failure.message.contains(&status[..3]), "{failure}");
        assert_eq!(failure.retry_after_ms, None);
    }
    let mut cut = head("503 Service Unavailable", &["Content-Length: 100"]);
    cut.extend_from_slice(b"{");
    assert_eq!(failure_of(cut).await.kind, FailureKind::ServerError);
}

#[tokio::test]
async fn a_throttle_says_how_long_to_wait() {
    let throttled = |retry_after: &str| {
        answer(
            "429 Too Many Requests",
            &[
                JSON,
                "Date: Sun, 06 Nov 1994 08:49:37 GMT",
                "X-RateLimit-Limit: 300",
                "X-RateLimit-Remaining: 0",
                "X-RateLimit-Reset: 1994-11-06T08:50:00.000000Z",
                retry_after,
            ],
            r#"{"error":"Too many requests"}"#,
        )
    };
    for (retry_after, ms) in [
        ("Retry-After: 30", Some(30_000)),
        ("Retry-After: Sun, 06 Nov 1994 08:50:00 GMT", Some(23_000)),
        ("Retry-After: later", None),
        ("X-Nothing: 1", None),
    ] {
        let failure = failure_of(throttled(retry_after)).await;
        assert_eq!(failure.kind, FailureKind::Throttled);
        assert_eq!(failure.retry_after_ms, ms, "{retry_after}");
        let throttle = failure.throttle.expect("the headers");
        assert_eq!(
            (throttle.remaining, throttle.reset_at_ms),
            (0, 784_111_800_000)
        );
    }
}

#[tokio::test]
async fn redirects_of_the_same_server_are_followed() {
    let server = Server::start(|request| {
        Reply::Bytes(if request.starts_with("GET /moved") {
            answer("200 OK", &[JSON], PAGE)
        } else {
            answer("307 Temporary Redirect", &["Location: /moved?x=1"], "")
        })
    })
    .await;
    let client = server.client_with(options(), Some("secret-token"));
    assert_eq!(home(&client).await.expect("a page").listed.len(), 2);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("Bearer secret-token"));

    let in_circles = Server::sending(answer("302 Found", &["Location: /again"], "")).await;
    let failure = home(&in_circles.client()).await.expect_err("a circle");
    assert_eq!(failure.kind, FailureKind::Redirected);
    assert_eq!(in_circles.requests().len(), 6);
}

#[tokio::test]
async fn redirects_elsewhere_are_not_followed() {
    let other = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
    let port = other.port();
    for location in [
        format!("http://localhost:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://me:pw@127.0.0.1/".to_owned(),
        "http://".to_owned(),
    ] {
        let location = format!("Location: {location}");
        let failure = failure_of(answer("301 Moved Permanently", &[&location], "")).await;
        assert_eq!(
            failure.kind,
            FailureKind::Redirected,
            "{location}: {failure}"
        );
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn private_addresses_are_refused_unless_allowed() {
    let server = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
    let port = server.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let options = Options {
            allow_private: false,
            ..options()
        };
        let failure = home(&client(&format!("http://{host}:{port}"), options, None))
            .await
            .expect_err("refused");
        assert_eq!(
            failure.kind,
            FailureKind::PrivateAddress,
            "{host}: {failure}"
        );
        for advice in ["--allow-private", "upstream.allow_private"] {
            assert!(failure.message.contains(advice), "{failure}");
        }
    }
    assert_eq!(server.requests().len(), 0);
    let by_name = client(&format!("http://localhost:{port}"), options(), None);
    assert_eq!(home(&by_name).await.expect("a page").listed.len(), 2);
}

#[tokio::test]
async fn look_ups() {
    let post = r#"{"id":"2","account":{"id":"7","acct":"x"}}"#;
    let id = UpstreamId::from("2");
    let server = Server::sending(answer("200 OK", &[JSON], post)).await;
    let client = server.client();
    let (found, headers) = client.look_up(&id).await.expect("an answer");
    let LookUp::Found(found) = found else {
        panic!("it is there");
    };
    assert_eq!((found.id, found.raw.as_str()), (id.clone(), post));
    assert_eq!(headers.body_bytes, post.len() as u64);
    assert!(server.requests()[0].starts_with("GET /api/v1/statuses/2 HTTP/1.1\r\n"));

    let other = client.look_up(&"3".into()).await.expect_err("another post");
    assert_eq!(other.kind, FailureKind::BadId);
    for dots in ["", ".", ".."] {
        let failure = client.look_up(&dots.into()).await.expect_err("no ID");
        assert_eq!(failure.kind, FailureKind::BadId);
    }
    assert_eq!(server.requests().len(), 2);

    for status in ["404 Not Found", "410 Gone"] {
        let body = r#"{"error":"Record not found"}"#;
        let server = Server::sending(answer(status, &[JSON], body)).await;
        let (found, _) = server.client().look_up(&id).await.expect("an answer");
        assert_eq!(found, LookUp::Gone);
    }
    for (status, kind) in [
        ("401 Unauthorized", FailureKind::Unauthorized),
        ("429 Too Many Requests", FailureKind::Throttled),
        ("503 Service Unavailable", FailureKind::ServerError),
    ] {
        let server = Server::sending(answer(status, &[JSON], "")).await;
        let failure = server.client().look_up(&id).await.expect_err("a failure");
        assert_eq!(failure.kind, kind);
    }
}

#[tokio::test]
async fn one_client_serves_many_servers() {
    let http = Http::new(options()).expect("a client");
    for _ in 0..20 {
        let server = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
        let address = server.address().parse().expect("an address");
        let client = Mastodon::new(http.clone(), address, None).expect("no token");
        assert_eq!(home(&client).await.expect("a page").listed.len(), 2);
    }
}

#[tokio::test]
async fn tokens_that_cannot_be_sent_are_refused() {
    let make = |options: Options, address: &str, token: &str| {
        Mastodon::new(
            Http::new(options).expect("a client"),
            address.parse().expect("an address"),
            Some(token.to_owned().into()),
        )
        .map(drop)
    };
    for bad in ["", "a b", "a\n", "a\r\nX: y", "é"] {
        assert_eq!(
            make(options(), "https://a.example", bad),
            Err(TokenError::NotAToken)
        );
    }
    assert_eq!(make(Options::default(), "https://a.example", "abc"), Ok(()));
    assert!(matches!(
        make(Options::default(), "http://a.example", "abc"),
        Err(TokenError::Unencrypted(_))
    ));
    assert_eq!(make(options(), "http://a.example", "abc"), Ok(()));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn br(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    brotli::CompressorWriter::new(&mut compressed, 4096, 5, 22)
        .write_all(bytes)
        .expect("memory");
    compressed
}
