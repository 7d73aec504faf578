//! The client of Twitter's API against a server that sends exact bytes.

use crate::server::{OAUTH, Reply, Server, answer, first_page_of};
use driftline_core::{
    answer::{FailureKind, Finding, LookUp, PageRequest, Throttle},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_upstream::Timeline;

const FORM: &str =
    "&tweet_mode=extended&include_rts=true&include_entities=true&include_ext_alt_text=true";

fn below(id: &str) -> PageRequest {
    PageRequest {
        max_id: Some(id.into()),
        ..first_page_of(20)
    }
}

#[tokio::test]
async fn every_timeline_asks_for_its_path_and_bounds() {
    let server = Server::sending(answer("200 OK", &[], r#"[{"id_str":"9"},{"id_str":"8"}]"#)).await;
    let upstream = server.upstream(Api::Twitter, OAUTH);
    for (timeline, request, target) in [
        (
            "home",
            PageRequest {
                since_id: Some("5".into()),
                ..below("1050118621198921728")
            },
            "/1.1/statuses/home_timeline.json?count=20&since_id=5&max_id=1050118621198921727",
        ),
        (
            "account:7",
            first_page_of(1000),
            "/1.1/statuses/user_timeline.json?count=200&user_id=7",
        ),
        (
            "mentions",
            first_page_of(0),
            "/1.1/statuses/mentions_timeline.json?count=1",
        ),
        (
            "list:8",
            below("100"),
            "/1.1/lists/statuses.json?count=20&list_id=8&max_id=99",
        ),
    ] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        let page = upstream.page(&timeline, &request).await.expect("a page");
        let ids: Vec<_> = page.listed.iter().map(|l| l.position.as_str()).collect();
        assert_eq!(ids, ["9", "8"]);
        let sent = server.targets().pop().expect("a request");
        assert_eq!(sent, format!("{target}{FORM}"));
    }
    server.assert_first_sent("\r\nauthorization: oauth oauth_consumer_key=\"ck\", ");
}

#[tokio::test]
async fn what_twitter_does_not_have_is_not_asked_for() {
    let server = Server::sending(answer("200 OK", &[], "[]")).await;
    let upstream = server.upstream(Api::Twitter, "");
    for (timeline, request, kind) in [
        ("public", first_page_of(1), FailureKind::NotFound),
        ("tag:rust", first_page_of(1), FailureKind::NotFound),
        ("list:mine", first_page_of(1), FailureKind::BadId),
        ("home", below("x"), FailureKind::BadId),
        ("home", below("99999999999999999999"), FailureKind::BadId),
        (
            "home",
            PageRequest {
                min_id: Some("1".into()),
                ..first_page_of(1)
            },
            FailureKind::Refused,
        ),
    ] {
        let timeline: Timeline = timeline.parse().expect("a timeline");
        let failure = upstream
            .page(&timeline, &request)
            .await
            .expect_err("nothing");
        assert_eq!(failure.kind, kind, "{failure}");
    }
    for least in ["0", "1"] {
        let page = upstream
            .page(&Timeline::Home, &below(least))
            .await
            .expect("nothing");
        assert_eq!(page.listed, []);
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_code_is_more_precise_than_the_status() {
    let throttled = r#"{"errors":[{"code":88,"message":"Rate limit exceeded"}]}"#;
    let headers = [
        "x-rate-limit-limit: 15",
        "x-rate-limit-remaining: 0",
        "x-rate-limit-reset: 1755464400",
    ];
    for status in [
        "429 Too Many Requests",
        "400 Bad Request",
        "403 Forbidden",
        "200 OK",
    ] {
        let server = Server::sending(answer(status, &headers, throttled)).await;
        let upstream = server.upstream(Api::Twitter, "token");
        let page = upstream
            .page(&Timeline::Home, &first_page_of(9))
            .await
            .expect_err("throttled");
        let found = upstream
            .look_up_many(&["5".into()])
            .await
            .expect_err("throttled");
        for failure in [page, found] {
            assert_eq!(failure.kind, FailureKind::Throttled, "{status}: {failure}");
            let throttle = Throttle {
                limit: 15,
                remaining: 0,
                reset_at_ms: 1_755_464_400_000,
                error_ms: 0,
            };
            assert_eq!(failure.throttle, Some(throttle));
        }
    }
    let expired = r#"{"errors":[{"code":89,"message":"Invalid or expired token."}]}"#;
    let server = Server::sending(answer("400 Bad Request", &[], expired)).await;
    let upstream = server.upstream(Api::Twitter, "token");
    let failure = upstream
        .page(&Timeline::Home, &first_page_of(9))
        .await
        .expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Unauthorized);
}

#[tokio::test]
async fn look_ups() {
    let body = r#"{"id":{"1":{"id":1,"id_str":"1","full_text":"x"},"2":null}}"#;
    let server = Server::sending(answer("200 OK", &[], body)).await;
    let upstream = server.upstream(Api::Twitter, "");
    let asked = ["1", "2", "1", "3"].map(UpstreamId::from);
    let found = upstream.look_up_many(&asked).await.expect("findings");
    assert_eq!(
        server.targets(),
        [format!(
            "/1.1/statuses/lookup.json?id=1%2C2%2C3&map=true{FORM}"
        )]
    );
    assert_eq!(found.findings.len(), 3);
    assert!(matches!(&found.findings[0].1, Finding::Found(_)));
    assert_eq!(found.findings[1], ("2".into(), Finding::Missing));
    assert_eq!(found.findings[2], ("3".into(), Finding::Missing));
    let (found, _) = upstream.look_up(&"2".into()).await.expect("an answer");
    assert_eq!(found, LookUp::Hidden);
    let (found, _) = upstream.look_up(&"1".into()).await.expect("an answer");
    assert!(matches!(found, LookUp::Found(_)));

    for (status, code, finding) in [
        ("404 Not Found", 17, Finding::Missing),
        ("404 Not Found", 144, Finding::Gone),
        ("403 Forbidden", 63, Finding::Hidden),
        ("403 Forbidden", 179, Finding::Hidden),
    ] {
        let body = format!(r#"{{"errors":[{{"code":{code},"message":"m"}}]}}"#);
        let server = Server::sending(answer(status, &[], body)).await;
        let upstream = server.upstream(Api::Twitter, "");
        let found = upstream
            .look_up_many(&["5".into()])
            .await
            .expect("findings");
        assert_eq!(found.findings, [("5".into(), finding)]);
    }
    for (status, kind) in [
        ("404 Not Found", FailureKind::NotFound),
        ("401 Unauthorized", FailureKind::Unauthorized),
        ("403 Forbidden", FailureKind::Forbidden),
        ("503 Service Unavailable", FailureKind::ServerError),
    ] {
        let server = Server::sending(answer(status, &[], "<html>")).await;
        let upstream = server.upstream(Api::Twitter, "");
        let failure = upstream
            .look_up_many(&["5".into()])
            .await
            .expect_err("no word on it");
        assert_eq!(failure.kind, kind);
    }
}

#[tokio::test]
async fn a_refusal_of_several_posts_is_about_none_of_them_yet() {
    for (code, kind) in [
        (179, FailureKind::Forbidden),
        (220, FailureKind::Unauthorized),
    ] {
        let body = format!(r#"{{"errors":[{{"code":{code},"message":"m"}}]}}"#);
        let server = Server::sending(answer("403 Forbidden", &[], &body)).await;
        let upstream = server.upstream(Api::Twitter, "");
        let failure = upstream
            .look_up_many(&["5".into(), "6".into()])
            .await
            .expect_err("no word on either");
        assert_eq!(failure.kind, kind);
    }
}

#[tokio::test]
async fn the_owner_of_a_credential_is_shown() {
    let server = Server::start(|request| {
        let is_users = request.contains("\r\nauthorization: OAuth ")
            || request.contains("\r\nAuthorization: OAuth ");
        Reply::Bytes(if request.starts_with("GET /1.1/statuses/lookup.json?id=20&") {
            answer("200 OK", &[], r#"{"id":{"20":null}}"#)
        } else if is_users {
            answer("200 OK", &[], r#"{"id_str":"42","screen_name":"ann"}"#)
        } else {
            let body = r#"{"errors":[{"code":220,"message":"Your credentials do not allow access to this resource."}]}"#;
            answer("403 Forbidden", &[], body)
        })
    })
    .await;
    let said = server.upstream(Api::Twitter, OAUTH).verify().await;
    assert_eq!(said.as_deref(), Ok("the user @ann (42)"));
    let said = server
        .upstream(Api::Twitter, "app")
        .verify()
        .await
        .expect("an application");
    assert!(said.starts_with("an application, not a user"), "{said}");
    let said = server.upstream(Api::Twitter, "").verify().await;
    assert_eq!(said.as_deref(), Ok("no credential; the server answers"));
    let server = Server::sending(answer("401 Unauthorized", &[], "")).await;
    let failure = server
        .upstream(Api::Twitter, OAUTH)
        .verify()
        .await
        .expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Unauthorized);
}
