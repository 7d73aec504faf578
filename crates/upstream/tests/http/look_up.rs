//! Batch look-ups and credentials of Mastodon, and what the clients have in
//! common.

use crate::server::{OAUTH, Reply, Server, answer, options};
use driftline_core::{
    answer::{Abilities, FailureKind, Finding},
    api::Api,
    upstream_id::UpstreamId,
};
use driftline_net::{Http, Options};
use driftline_upstream::{ClientPurpose, Credential, Timeline, TokenError, Upstream};

fn ids<const N: usize>(ids: [&str; N]) -> Vec<UpstreamId> {
    ids.map(UpstreamId::from).to_vec()
}

#[tokio::test]
async fn a_batch_is_one_request_and_each_id_has_one_finding() {
    // Out of order, one twice with another text, one that was not asked for.
    let body = r#"[{"id":"3"},{"id":"1","url":"first"},{"id":"9"},{"id":"1","url":"second"}]"#;
    let server = Server::sending(answer("200 OK", &[], body)).await;
    let upstream = server.upstream(Api::Mastodon, "");
    let asked = ids(["1", "2", "1", "3", "a&b"]);
    let found = upstream.look_up_many(&asked).await.expect("findings");
    assert_eq!(
        server.targets(),
        ["/api/v1/statuses?id%5B%5D=1&id%5B%5D=2&id%5B%5D=3&id%5B%5D=a%26b"]
    );
    let seen: Vec<_> = found.findings.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(seen, ["1", "2", "3", "a&b"]);
    assert!(
        matches!(&found.findings[0].1, Finding::Found(post) if post.url.as_deref() == Some("first"))
    );
    assert_eq!(found.findings[1].1, Finding::Missing);
    assert!(matches!(&found.findings[2].1, Finding::Found(post) if post.id == "3".into()));
    assert_eq!(found.findings[3].1, Finding::Missing);
    assert_eq!(found.headers.body_bytes, body.len() as u64);
}

#[tokio::test]
async fn one_id_alone_is_asked_for_by_its_own_address() {
    let server = Server::start(|request| {
        Reply::Bytes(if request.starts_with("GET /api/v1/statuses/1 ") {
            answer("200 OK", &[], r#"{"id":"1"}"#)
        } else {
            answer("404 Not Found", &[], "{}")
        })
    })
    .await;
    let upstream = server.upstream(Api::Mastodon, "");
    let found = upstream
        .look_up_many(&ids(["1", "1"]))
        .await
        .expect("found");
    assert!(matches!(&found.findings[..], [(id, Finding::Found(_))] if *id == "1".into()));
    let gone = upstream.look_up_many(&ids(["2"])).await.expect("gone");
    assert_eq!(gone.findings, [("2".into(), Finding::Gone)]);
}

#[tokio::test]
async fn a_post_without_a_history_has_no_earlier_versions() {
    let server = Server::start(|request| {
        Reply::Bytes(match request.split(' ').nth(1).unwrap_or_default() {
            "/api/v1/statuses/a%26b/history" => {
                let version = |at| format!(r#"{{"created_at":"2026-01-01T00:00:0{at}Z"}}"#);
                let body = format!("[{},{}]", version(1), version(2));
                answer("200 OK", &[], &body)
            }
            "/api/v1/statuses/1/history" => answer("404 Not Found", &[], "{}"),
            "/api/v1/statuses/2/history" => answer("501 Not Implemented", &[], "{}"),
            _ => answer("403 Forbidden", &[], "{}"),
        })
    })
    .await;
    let upstream = server.upstream(Api::Mastodon, "");
    let (versions, headers) = upstream.history(&"a&b".into()).await.expect("versions");
    assert_eq!(versions.len(), 1);
    assert!(headers.received_at_ms > 0);
    for id in ["1", "2"] {
        let (versions, _) = upstream.history(&id.into()).await.expect("none");
        assert_eq!(versions, [], "{id}");
    }
    let refused = upstream.history(&"3".into()).await.expect_err("a refusal");
    assert_eq!(refused.kind, FailureKind::Forbidden);
    let (versions, _) = server
        .upstream(Api::X, "")
        .history(&"1".into())
        .await
        .expect("none");
    assert_eq!(versions, []);
}

#[tokio::test]
async fn nothing_and_too_much_are_not_asked() {
    let server = Server::sending(answer("200 OK", &[], "[]")).await;
    for (api, limit) in [(Api::Mastodon, 20), (Api::X, 100), (Api::Twitter, 100)] {
        let upstream = server.upstream(api, "");
        assert_eq!((upstream.api(), upstream.look_up_limit(true)), (api, limit));
        let nothing = upstream.look_up_many(&[]).await.expect("nothing");
        assert_eq!(nothing.findings, []);
        assert!(nothing.headers.sent_at_ms > 0);
        let many: Vec<_> = (0..=limit)
            .map(|id| UpstreamId::new(id.to_string()))
            .collect();
        let failure = upstream.look_up_many(&many).await.expect_err("too many");
        assert_eq!(failure.kind, FailureKind::Refused);
        let said = format!(
            "{} posts were to be looked up in one request, and {limit} is",
            limit + 1
        );
        assert!(failure.message.contains(&said), "{failure}");
        for odd in ["", ".", ".."] {
            let failure = upstream
                .look_up_many(&ids(["1", odd]))
                .await
                .expect_err("no ID");
            assert_eq!(failure.kind, FailureKind::BadId);
        }
    }
    assert_eq!(server.targets(), [""; 0]);
}

#[tokio::test]
async fn whether_there_is_a_batch_look_up() {
    let html = "<!DOCTYPE html><title>App</title>";
    for (status, body, expected) in [
        ("200 OK", "[]", Ok(None)),
        ("200 OK", r#" [{"id":"1"}]"#, Ok(Some(true))),
        ("200 OK", "{}", Ok(Some(false))),
        ("200 OK", html, Ok(Some(false))),
        ("200 OK", "", Ok(Some(false))),
        ("200 OK", "[{", Err(FailureKind::Truncated)),
        ("400 Bad Request", "", Ok(Some(false))),
        ("404 Not Found", html, Ok(Some(false))),
        ("405 Method Not Allowed", "", Ok(Some(false))),
        ("422 Unprocessable Content", "", Ok(Some(false))),
        ("501 Not Implemented", "", Ok(Some(false))),
        ("401 Unauthorized", "", Err(FailureKind::Unauthorized)),
        ("403 Forbidden", "", Err(FailureKind::Forbidden)),
        ("429 Too Many Requests", "", Err(FailureKind::Throttled)),
        (
            "500 Internal Server Error",
            "",
            Err(FailureKind::ServerError),
        ),
        ("503 Service Unavailable", "", Err(FailureKind::ServerError)),
        ("202 Accepted", "", Err(FailureKind::UnexpectedStatus)),
    ] {
        let server = Server::sending(answer(status, &[], body)).await;
        let upstream = server.upstream(Api::Mastodon, "");
        let found = upstream.has_batch_look_up(&"7".into()).await;
        assert_eq!(
            found.map_err(|failure| failure.kind),
            expected,
            "{status} {body}"
        );
        assert_eq!(server.targets(), ["/api/v1/statuses?id%5B%5D=7"]);
    }
    let silent = Server::sending(Vec::new()).await;
    let failure = silent
        .upstream(Api::Mastodon, "")
        .has_batch_look_up(&"7".into())
        .await
        .expect_err("no answer");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    for api in [Api::X, Api::Twitter] {
        let found = silent
            .upstream(api, "")
            .has_batch_look_up(&"7".into())
            .await;
        assert_eq!(found, Ok(Some(true)));
    }
    assert_eq!(silent.requests().len(), 1);
}

#[tokio::test]
async fn a_403_to_a_look_up_differs_from_a_refused_token() {
    for (status, kind) in [
        ("401 Unauthorized", FailureKind::Unauthorized),
        ("403 Forbidden", FailureKind::Forbidden),
    ] {
        let server = Server::sending(answer(status, &[], "{}")).await;
        for (api, ids) in [
            (Api::Mastodon, &["5"][..]),
            (Api::Mastodon, &["5", "6"]),
            (Api::X, &["5", "6"]),
        ] {
            let ids: Vec<_> = ids.iter().map(|id| UpstreamId::from(*id)).collect();
            let failure = server
                .upstream(api, "")
                .look_up_many(&ids)
                .await
                .expect_err("no word on them");
            assert_eq!(failure.kind, kind, "{api} {ids:?}");
        }
        // Who reads a timeline has one word for both.
        let failure = server
            .upstream(Api::Mastodon, "")
            .look_up(&"5".into())
            .await
            .expect_err("no word on it");
        assert_eq!(failure.kind, FailureKind::Unauthorized);
    }
}

#[tokio::test]
async fn the_owner_of_a_token_is_shown() {
    let account = answer("200 OK", &[], r#"{"id":"7","acct":"ann"}"#);
    let server = Server::sending(account).await;
    let said = server.upstream(Api::Mastodon, "token").verify().await;
    assert_eq!(said.as_deref(), Ok("the account @ann"));
    assert_eq!(server.targets(), ["/api/v1/accounts/verify_credentials"]);

    let server = Server::start(|request| {
        Reply::Bytes(if request.contains(" /api/v1/apps/") {
            answer("200 OK", &[], r#"{"name":"Reader"}"#)
        } else {
            let body = r#"{"error":"This method requires an authenticated user"}"#;
            answer("422 Unprocessable Content", &[], body)
        })
    })
    .await;
    let said = server
        .upstream(Api::Mastodon, "token")
        .verify()
        .await
        .expect("an application");
    assert!(
        said.starts_with("the application “Reader”, not an account"),
        "{said}"
    );

    let server = Server::sending(answer("401 Unauthorized", &[], "{}")).await;
    let failure = server
        .upstream(Api::Mastodon, "token")
        .verify()
        .await
        .expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Unauthorized);
    assert_eq!(server.requests().len(), 2);

    let server = Server::sending(answer("200 OK", &[], r#"{"title":"Here"}"#)).await;
    let said = server.upstream(Api::Mastodon, "").verify().await;
    assert_eq!(said.as_deref(), Ok("no credential; the server is “Here”"));
}

#[tokio::test]
async fn limits_abilities_and_scopes() {
    let server = Server::sending(Vec::new()).await;
    let list = Timeline::List("1".into());
    let account = Timeline::Account("1".into());
    for (api, page_limit, min_id, limits) in [
        (Api::Mastodon, 40, true, [1, 20]),
        (Api::X, 100, false, [100, 100]),
        (Api::Twitter, 200, false, [100, 100]),
    ] {
        let upstream = server.upstream(api, "");
        let abilities = Abilities { page_limit, min_id };
        assert_eq!(upstream.abilities(), abilities);
        assert_eq!([false, true].map(|has| upstream.look_up_limit(has)), limits);
        let purposes = [
            ClientPurpose::LookUp,
            ClientPurpose::Page(&Timeline::Home),
            ClientPurpose::Page(&Timeline::Mentions),
            ClientPurpose::Page(&list),
            ClientPurpose::Page(&account),
        ];
        let mut scopes = purposes.map(|purpose| upstream.scope(purpose)).to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        assert_eq!(
            scopes.len(),
            if api == Api::Mastodon { 1 } else { 5 },
            "{scopes:?}"
        );
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_sent_are_refused() {
    let make = |api, address: &str, credential: &str| {
        let http = Http::new(Options::default()).expect("a client");
        let address = address.parse().expect("an address");
        let credential = Credential::parse(credential).expect("a credential");
        Upstream::new(api, http, address, credential).map(drop)
    };
    let https = "https://a.example";
    for api in [Api::X, Api::Twitter] {
        assert_eq!(make(api, https, OAUTH), Ok(()));
        assert_eq!(make(api, https, "token"), Ok(()));
        for credential in [OAUTH, "token"] {
            let refused = make(api, "http://a.example", credential);
            assert!(matches!(refused, Err(TokenError::Unencrypted(_))));
        }
    }
    assert_eq!(
        make(Api::Mastodon, https, OAUTH),
        Err(TokenError::NotForMastodon)
    );
    let http = Http::new(options()).expect("a client");
    let bad = Credential::Bearer("a\nb".to_owned().into());
    let refused = Upstream::new(Api::X, http, https.parse().expect("an address"), bad).map(drop);
    assert_eq!(refused, Err(TokenError::NotAToken));
}

#[tokio::test]
async fn accounts_are_found_by_name_with_the_look_up_or_a_search() {
    const LIKE: &str = r#"[{"id":"7","acct":"ada.b@far.example"},{"id":"8","acct":"Ada@Far.example"},{"acct":"ada"}]"#;
    for (look_up, search, name, expected) in [
        (
            ("200 OK", r#"{"id":"5"}"#),
            ("500 Oh", ""),
            "@ada",
            Ok(Some("5")),
        ),
        (
            ("200 OK", r#"{"id":".."}"#),
            ("200 OK", LIKE),
            "@ada",
            Err(FailureKind::BadId),
        ),
        (
            ("404 No", ""),
            ("200 OK", LIKE),
            "ada@far.example",
            Ok(Some("8")),
        ),
        (("404 No", ""), ("200 OK", LIKE), "@a@far.example", Ok(None)),
        (
            ("404 No", ""),
            ("200 OK", LIKE),
            "@ada",
            Err(FailureKind::BadId),
        ),
        (("404 No", ""), ("401 No", "{}"), "@ada", Ok(None)),
        (
            ("404 No", ""),
            ("503 No", "{}"),
            "@ada",
            Err(FailureKind::ServerError),
        ),
        (
            ("401 No", ""),
            ("200 OK", LIKE),
            "@ada",
            Err(FailureKind::Unauthorized),
        ),
    ] {
        let server = Server::start(move |request| {
            let is_search = request.starts_with("GET /api/v1/accounts/search?q=");
            let (status, body) = if is_search { search } else { look_up };
            Reply::Bytes(answer(status, &[], body))
        })
        .await;
        let handle = name.parse().expect("a handle");
        let found = server.upstream(Api::Mastodon, "").account_id(&handle).await;
        let found = found.map_err(|failure| failure.kind);
        let expected = expected.map(|id| id.map(UpstreamId::from));
        assert_eq!(found, expected, "{look_up:?} {search:?} {name}");
        let asked = server.targets()[0].clone();
        let acct = name.trim_start_matches('@').replace('@', "%40");
        assert_eq!(asked, format!("/api/v1/accounts/lookup?acct={acct}"));
    }
}
