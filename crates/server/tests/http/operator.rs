//! The operator's token, and those who come without it.

use driftline_api::{App, auth::Authorization};
use driftline_db::testing::Fresh;
use driftline_server::testing::OPERATOR_TOKEN;
use reqwest::{Method, StatusCode, header};
use serde_json::json;

use crate::world::{TOKEN, World, parsed, status};

/// What needs the token, and what is answered to whoever has it.
fn guarded(feed: &str) -> Vec<(Method, String, StatusCode)> {
    vec![
        (Method::GET, "/api/v1/lists".into(), StatusCode::OK),
        (
            Method::GET,
            "/api/v1/lists/77".into(),
            StatusCode::NOT_FOUND,
        ),
        (Method::GET, feed.into(), StatusCode::OK),
        (Method::GET, "/metrics".into(), StatusCode::NOT_FOUND),
        (Method::GET, "/api/v1/stream/posts".into(), StatusCode::OK),
        (
            Method::GET,
            "/api/v1/streaming/list?list=77".into(),
            StatusCode::NOT_FOUND,
        ),
        (Method::POST, "/api/v1/track".into(), StatusCode::ACCEPTED),
        (
            Method::GET,
            "/api/v1/track?instance=sim.example".into(),
            StatusCode::OK,
        ),
    ]
}

async fn send(
    world: &World,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
) -> reqwest::Response {
    let mut request = world
        .client
        .request(method.clone(), format!("{}{path}", world.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if *method == Method::POST {
        let body = json!({ "instance": "https://sim.example", "ids": ["1"] });
        request = request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string());
    }
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_public_posts_needs_the_token() {
    let world = World::of_strangers().await;
    let mut feed = world.feed("home").await;
    feed.poll(&[status(5)]).await;
    let right = format!("Bearer {TOKEN}");
    let wrong = format!("Bearer {TOKEN}x");
    let basic = format!("Basic {TOKEN}");
    let own = world.base.replace("http://", "");
    for (method, path, expected) in guarded(&feed.path()) {
        for (sent, challenge) in [
            (None, "Bearer realm=\"driftline\""),
            (
                Some(&wrong),
                "Bearer realm=\"driftline\", error=\"invalid_token\"",
            ),
            (Some(&basic), "Bearer realm=\"driftline\""),
        ] {
            // nginx's `proxy_pass http://127.0.0.1:7171` sends the first `Host`, and no header that tells of it.
            for host in [&own, "localhost", "evil.example"] {
                let sent = sent.iter().map(|sent| ("authorization", sent.as_str()));
                let headers: Vec<(&str, &str)> = sent.chain([("host", host)]).collect();
                let answer = send(&world, &method, &path, &headers).await;
                let what = format!("{method} {path} {host}");
                assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{what}");
                assert_eq!(answer.headers()["www-authenticate"], challenge);
                let error = parsed(answer).await;
                assert!(error["error"].is_string(), "{error}");
                assert!(!error.to_string().contains(TOKEN), "{error}");
            }
        }
        let in_the_address = format!(
            "{path}{}access_token={TOKEN}",
            if path.contains('?') { '&' } else { '?' }
        );
        let answer = send(&world, &method, &in_the_address, &[]).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
        // Whoever has the token may use any name of the server.
        let headers = [
            ("authorization", right.as_str()),
            ("host", "drift.example:7171"),
        ];
        let answer = send(&world, &method, &path, &headers).await;
        assert_eq!(answer.status(), expected, "{method} {path}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_a_browser_may_send_the_token_where_it_may_read() {
    let world = World::of_strangers().await;
    let asked = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "authorization"),
    ];
    let answer = send(&world, &Method::OPTIONS, "/api/v1/lists", &asked).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(
        answer.headers()["access-control-allow-headers"],
        "authorization"
    );
    let answer = send(&world, &Method::OPTIONS, "/api/v1/track", &asked).await;
    assert!(
        !answer
            .headers()
            .contains_key("access-control-allow-headers")
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_more_where_others_come_and_there_is_no_token() {
    let change = |app: &mut App| app.authorization = Authorization::Closed;
    let world = World::on(Fresh::sqlite(), change).await;
    let feed = world.feed("home").await;
    for (method, path, _) in guarded(&feed.path()) {
        let answer = send(&world, &method, &path, &[]).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method} {path}");
        let error = parsed(answer).await;
        let error = error["error"].as_str().unwrap();
        assert!(error.contains("no operator's token"), "{error}");
    }
    assert_eq!(world.page("/api/v1/timelines/public").await.len(), 0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_undeclared_proxy_forwards_is_refused() {
    let forwarding = [
        ("forwarded", "for=203.0.113.5"),
        ("x-forwarded-for", "203.0.113.5"),
        ("x-forwarded-host", "drift.example"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "203.0.113.5"),
    ];
    let token = format!("Bearer {OPERATOR_TOKEN}");
    let paths = ["/api/v1/timelines/public", "/api/v1/lists", "/livez", "/"];
    let undeclared = World::new().await;
    for path in paths {
        for header in forwarding {
            let headers = [header, ("authorization", token.as_str())];
            let answer = send(&undeclared, &Method::GET, path, &headers).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path} {header:?}");
            let error = parsed(answer).await["error"].to_string();
            assert!(error.contains("server.public_url"), "{error}");
        }
    }
    undeclared.close().await;
    let declared = World::on(Fresh::sqlite(), |app| {
        app.public_base = Some("https://drift.example".parse().unwrap());
    })
    .await;
    for header in forwarding {
        let answer = send(&declared, &Method::GET, "/api/v1/lists", &[header]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{header:?}");
    }
    declared.close().await;
}
