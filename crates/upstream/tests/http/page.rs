//! Pages and look-ups, from a server that sends exact bytes.

use driftline_core::{
    answer::{Abilities, FailureKind, LookUp, PageRequest, Throttle},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_net::{Http, Options};
use driftline_upstream::{Credential, Timeline, TokenError, Upstream};

use crate::server::{JSON, PAGE, Server, answer, failure_of, first_page, head, home, ids, options};

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
            // The server's clock shows 1994.
            reset_at_ms: 1_755_464_400_777 + headers.sent_at_ms + headers.round_trip_ms
                - 784_111_777_000,
            error_ms: headers.round_trip_ms + 1_000,
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
            error_ms: 0,
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
            client.abilities(),
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
            answer(
                "200 OK",
                &[JSON],
                format!("[{}]", [r#"{"id":null}"#; 6].join(",")),
            ),
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
    // Few items without IDs may be posts that cannot be read.
    let few = format!("[{}]", [r#"{"id":null}"#; 5].join(","));
    let server = Server::sending(answer("200 OK", &[JSON], few)).await;
    let page = home(&server.client()).await.expect("a page");
    assert_eq!(page.unreadable.len(), 5);
    // A list that is declared to be something else is a list all the same.
    let server = Server::sending(answer("200 OK", &["Content-Type: text/plain"], PAGE)).await;
    assert_eq!(
        home(&server.client()).await.expect("a page").listed.len(),
        2
    );
}

#[tokio::test]
async fn statuses_that_are_no_page() {
    for (status, kind) in [
        ("401 Unauthorized", FailureKind::Unauthorized),
        ("403 Forbidden", FailureKind::Unauthorized),
        ("404 Not Found", FailureKind::NotFound),
        ("410 Gone", FailureKind::NotFound),
        ("400 Bad Request", FailureKind::Refused),
        ("422 Unprocessable Content", FailureKind::Refused),
        ("202 Accepted", FailureKind::UnexpectedStatus),
        ("206 Partial Content", FailureKind::UnexpectedStatus),
        ("304 Not Modified", FailureKind::UnexpectedStatus),
        ("302 Found", FailureKind::UnexpectedStatus),
        ("500 Oh", FailureKind::ServerError),
        ("502 Bad Gateway", FailureKind::ServerError),
        ("530 Cloudflare", FailureKind::ServerError),
        ("599 Oh", FailureKind::ServerError),
        ("600 Oh", FailureKind::UnexpectedStatus),
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
        assert_eq!(throttle.remaining, 0);
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let left_ms = throttle.reset_at_ms - now_ms;
        assert!((0..=23_000).contains(&left_ms), "{left_ms}");
    }
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
async fn tokens_that_cannot_be_sent_are_refused() {
    let make = |options: Options, address: &str, token: &str| {
        Upstream::new(
            Api::Mastodon,
            Http::new(options).expect("a client"),
            address.parse().expect("an address"),
            Credential::Bearer(token.to_owned().into()),
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
