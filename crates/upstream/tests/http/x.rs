//! The client of X's API against a server that sends exact bytes.

use crate::server::{OAUTH, Reply, Server, answer, first_page_of};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use driftline_core::{
    answer::{FailureKind, Finding, LookUp, PageRequest, Throttle},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_upstream::Timeline;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use url::Url;

const ME: &str = r#"{"data":{"id":"42","name":"Ann","username":"ann"}}"#;
const EMPTY: &str = r#"{"meta":{"result_count":0}}"#;

/// Answers who the user is, and this to everything else.
async fn server(body: &'static str) -> Server {
    Server::start(move |request| {
        let is_me = request.starts_with("GET /2/users/me ");
        Reply::Bytes(answer("200 OK", &[], if is_me { ME } else { body }))
    })
    .await
}

fn without_fields(target: &str) -> &str {
    let fields = target.find("&tweet.fields=").expect("fields are asked for");
    assert!(target.contains("public_metrics") && target.contains("&expansions=author_id%2C"));
    &target[..fields]
}

#[tokio::test]
async fn every_timeline_asks_for_its_path_and_bounds() {
    let server = server(EMPTY).await;
    let upstream = server.upstream(Api::X, "token");
    let bounded = PageRequest {
        since_id: Some("5".into()),
        max_id: Some("9".into()),
        min_id: None,
        limit: 1000,
    };
    for (timeline, request, target) in [
        (
            "home",
            bounded.clone(),
            "/2/users/42/timelines/reverse_chronological?max_results=100&since_id=5&until_id=9",
        ),
        (
            "account:7",
            first_page_of(3),
            "/2/users/7/tweets?max_results=5",
        ),
        (
            "mentions",
            first_page_of(0),
            "/2/users/42/mentions?max_results=5",
        ),
        (
            "list:8",
            first_page_of(0),
            "/2/lists/8/tweets?max_results=1",
        ),
        ("list:8", bounded, "/2/lists/8/tweets?max_results=100"),
    ] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        let page = upstream.page(&timeline, &request).await.expect("a page");
        assert_eq!(page.listed, []);
        let targets = server.targets();
        assert_eq!(without_fields(targets.last().expect("a request")), target);
    }
    let asked = server.targets();
    let of_me = asked.iter().filter(|target| *target == "/2/users/me");
    assert_eq!(of_me.count(), 1, "the user is asked for once");
    server.assert_first_sent("\r\nauthorization: bearer token\r\n");
}

#[tokio::test]
async fn what_x_does_not_have_is_not_asked_for() {
    let server = server(EMPTY).await;
    let upstream = server.upstream(Api::X, "");
    for timeline in ["public", "local", "remote", "tag:rust"] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        let failure = upstream
            .page(&timeline, &first_page_of(10))
            .await
            .expect_err("none");
        assert_eq!(failure.kind, FailureKind::NotFound);
        assert!(failure.message.contains("X has no timeline"), "{failure}");
    }
    let above = PageRequest {
        min_id: Some("1".into()),
        ..first_page_of(10)
    };
    let account: Timeline = "account:7".parse().expect("a timeline");
    let failure = upstream
        .page(&account, &above)
        .await
        .expect_err("no min_id");
    assert_eq!(failure.kind, FailureKind::Refused);
    let odd = PageRequest {
        since_id: Some("01H".into()),
        ..first_page_of(10)
    };
    let failure = upstream.page(&account, &odd).await.expect_err("no ID");
    assert_eq!(failure.kind, FailureKind::BadId);
    let name: Timeline = "account:ann".parse().expect("a timeline");
    let failure = upstream
        .page(&name, &first_page_of(10))
        .await
        .expect_err("no ID");
    assert_eq!(failure.kind, FailureKind::BadId);
    assert!(failure.message.contains("a number of at most"), "{failure}");
    let failure = upstream.look_up(&"01H".into()).await.expect_err("no ID");
    assert_eq!(failure.kind, FailureKind::BadId);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_page_is_listed_and_no_longer_than_asked_for() {
    let server = server(
        r#"{"data":[{"id":"9"},{"id":"8"},{"id":"7"},{"id":"6"},{"id":"5"}],"meta":{"result_count":5,"next_token":"t"}}"#,
    )
    .await;
    let upstream = server.upstream(Api::X, "token");
    let page = upstream
        .page(&Timeline::Home, &first_page_of(3))
        .await
        .expect("a page");
    let ids: Vec<_> = page.listed.iter().map(|l| l.position.as_str()).collect();
    assert_eq!(ids, ["9", "8", "7"]);
    assert!(page.listed.iter().all(|l| l.position == l.post.id));
}

#[tokio::test]
async fn an_empty_page_that_goes_on_is_followed() {
    let server = Server::start(|request| {
        let next = if request.contains("pagination_token=t2") {
            r#"{"data":[{"id":"3"}],"meta":{"result_count":1}}"#
        } else if request.contains("pagination_token=t1") {
            r#"{"meta":{"result_count":0,"next_token":"t2"}}"#
        } else {
            r#"{"meta":{"result_count":0,"next_token":"t1"}}"#
        };
        Reply::Bytes(answer("200 OK", &[], next))
    })
    .await;
    let account: Timeline = "account:7".parse().expect("a timeline");
    let request = PageRequest {
        max_id: Some("9".into()),
        ..first_page_of(100)
    };
    let upstream = server.upstream(Api::X, "");
    let page = upstream.page(&account, &request).await.expect("a page");
    assert_eq!(page.listed[0].position, "3".into());
    assert!(page.headers.body_bytes > 100, "all three bodies count");
    assert!(server.targets()[2].contains("until_id=9&pagination_token=t2"));
}

#[tokio::test]
async fn a_page_that_always_goes_on_is_left() {
    let server = server(r#"{"meta":{"result_count":0,"next_token":"t"}}"#).await;
    let account: Timeline = "account:7".parse().expect("a timeline");
    let upstream = server.upstream(Api::X, "");
    let failure = upstream
        .page(&account, &first_page_of(9))
        .await
        .expect_err("no end");
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(server.requests().len(), 32);
}

#[tokio::test]
async fn a_throttle_is_carried_without_retry_after() {
    let headers = [
        "x-rate-limit-limit: 900",
        "x-rate-limit-remaining: 0",
        "x-rate-limit-reset: 1755464400",
    ];
    let body = r#"{"title":"Too Many Requests","detail":"Too Many Requests","type":"about:blank","status":429}"#;
    let server = Server::sending(answer("429 Too Many Requests", &headers, body)).await;
    let upstream = server.upstream(Api::X, "token");
    let account: Timeline = "account:7".parse().expect("a timeline");
    let throttle = Some(Throttle {
        limit: 900,
        remaining: 0,
        reset_at_ms: 1_755_464_400_000,
        error_ms: 0,
    });
    let page = upstream
        .page(&account, &first_page_of(9))
        .await
        .expect_err("throttled");
    let home = upstream
        .page(&Timeline::Home, &first_page_of(9))
        .await
        .expect_err("throttled");
    let found = upstream
        .look_up_many(&["5".into()])
        .await
        .expect_err("throttled");
    for failure in [page, home, found] {
        assert_eq!(failure.kind, FailureKind::Throttled);
        assert_eq!((failure.throttle, failure.retry_after_ms), (throttle, None));
        assert!(failure.message.contains("“Too Many Requests”"), "{failure}");
    }
    // A failure to learn who the user is is not kept.
    let home = server
        .targets()
        .into_iter()
        .filter(|target| target == "/2/users/me");
    assert_eq!(home.count(), 1);
    let _ = upstream.page(&Timeline::Home, &first_page_of(9)).await;
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn look_ups() {
    let server = server(
        r#"{"data":[{"id":"3","text":"x"}],"errors":[{"resource_id":"1","type":"https://api.twitter.com/2/problems/resource-not-found"},{"resource_id":"2","type":"https://api.twitter.com/2/problems/not-authorized-for-resource"}]}"#,
    )
    .await;
    let upstream = server.upstream(Api::X, "token");
    let asked = ["1", "2", "3", "1", "4"].map(UpstreamId::from);
    let found = upstream.look_up_many(&asked).await.expect("findings");
    assert_eq!(
        without_fields(&server.targets()[0]),
        "/2/tweets?ids=1%2C2%2C3%2C4"
    );
    assert_eq!(found.findings.len(), 4);
    assert_eq!(found.findings[0], ("1".into(), Finding::Gone));
    assert_eq!(found.findings[1], ("2".into(), Finding::Hidden));
    assert!(matches!(&found.findings[2].1, Finding::Found(_)));
    assert_eq!(found.findings[3], ("4".into(), Finding::Missing));
    for (id, is_found) in [("3", true), ("1", false), ("2", false), ("4", false)] {
        let (found, _) = upstream.look_up(&id.into()).await.expect("an answer");
        assert_eq!(matches!(found, LookUp::Found(_)), is_found, "{id}");
    }
}

#[tokio::test]
async fn the_owner_of_a_credential_is_shown() {
    let users = server(EMPTY).await;
    let said = users.upstream(Api::X, OAUTH).verify().await;
    assert_eq!(said.as_deref(), Ok("the user @ann (42)"));

    let server = Server::start(|request| {
        Reply::Bytes(if request.starts_with("GET /2/tweets?ids=20 ") {
            answer("200 OK", &[], r#"{"data":[{"id":"20","text":"x"}]}"#)
        } else {
            answer(
                "403 Forbidden",
                &[],
                r#"{"title":"Unsupported Authentication"}"#,
            )
        })
    })
    .await;
    let upstream = server.upstream(Api::X, "app-token");
    let said = upstream.verify().await.expect("an application");
    assert!(said.starts_with("an application, not a user"), "{said}");
    let failure = upstream
        .page(&Timeline::Home, &first_page_of(9))
        .await
        .expect_err("no user");
    assert_eq!(failure.kind, FailureKind::Unauthorized);
    assert!(
        failure.message.contains("need a user's credential"),
        "{failure}"
    );
    let failure = server.upstream(Api::X, OAUTH).verify().await;
    assert_eq!(failure.map_err(|f| f.kind), Err(FailureKind::Unauthorized));
    let said = server.upstream(Api::X, "").verify().await;
    assert_eq!(said.as_deref(), Ok("no credential; the server answers"));

    let server = Server::sending(answer("401 Unauthorized", &[], "{}")).await;
    let failure = server
        .upstream(Api::X, OAUTH)
        .verify()
        .await
        .expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Unauthorized);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn each_request_is_signed_and_a_redirect_anew() {
    let server = Server::start(|request| {
        Reply::Bytes(if request.starts_with("GET /2/tweets?") {
            answer(
                "308 Permanent Redirect",
                &["Location: /2/other/?ids=5&b=%2B%20c"],
                "",
            )
        } else {
            answer("200 OK", &[], r#"{"data":[{"id":"5"}]}"#)
        })
    })
    .await;
    let upstream = server.upstream(Api::X, OAUTH);
    upstream
        .look_up_many(&["5".into()])
        .await
        .expect("findings");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let nonces: Vec<_> = requests
        .iter()
        .map(|request| checked_nonce(request, &server.address()))
        .collect();
    assert_ne!(nonces[0], nonces[1]);
}

/// Checks a request's signature as a server does, and gives its nonce.
fn checked_nonce(request: &str, origin: &str) -> String {
    let target = request.split(' ').nth(1).expect("a target");
    let url = Url::parse(&format!("{origin}{target}")).expect("a URL");
    let header = request
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("authorization: "))
        .and_then(|line| line.split_once("OAuth "))
        .expect("signed")
        .1;
    let mut parameters: Vec<(String, String)> = header
        .split(", ")
        .map(|part| part.split_once('=').expect("a parameter"))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect();
    let (name, signature) = parameters.pop().expect("a signature");
    assert_eq!(name, "oauth_signature");
    let of = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name);
        found.expect(name).1.clone()
    };
    assert_eq!(of("oauth_consumer_key"), "ck");
    assert_eq!(of("oauth_token"), "7-at");
    let nonce = of("oauth_nonce");
    let seconds: i64 = of("oauth_timestamp").parse().expect("seconds");
    assert!(seconds > 1_700_000_000, "{seconds}");
    let asked = url.query_pairs().map(|(k, v)| (encoded(&k), encoded(&v)));
    parameters.extend(asked);
    parameters.sort();
    let parameters: Vec<_> = parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let text = format!(
        "GET&{}&{}",
        encoded(&format!("{origin}{}", url.path())),
        encoded(&parameters.join("&"))
    );
    let mut mac = Hmac::<Sha1>::new_from_slice(b"cs&ts").expect("a key");
    mac.update(text.as_bytes());
    let expected = encoded(&STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(signature, expected, "{text}");
    nonce
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
