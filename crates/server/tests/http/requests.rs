//! Requests that are odd, wrong, or not `GET`.

use driftline_db::testing::Fresh;
use driftline_sim::Status;
use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest::{Client, Method, StatusCode, header::LINK};
use serde_json::json;

use crate::world::{World, client, id, parsed, status};

async fn check_error(world: &World, path: &str, status: StatusCode, names: &str) {
    let answer = world.answer(path).await;
    assert_eq!(answer.status(), status, "{path}");
    let body = parsed(answer).await;
    let object = body.as_object().unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), ["error"], "{path}");
    let error = object["error"].as_str().unwrap();
    assert!(error.contains(names), "{path}: {error}");
}

#[tokio::test]
async fn a_bad_parameter_is_named() {
    let world = World::new().await;
    let feed = world.feed("home").await;
    for path in ["/api/v1/timelines/public".to_owned(), feed.path()] {
        for (query, name) in [
            ("since_id=abc", "since_id"),
            ("min_id=-1", "min_id"),
            ("max_id=1.5", "max_id"),
            ("max_id=0x10", "max_id"),
            ("max_id=%2B1", "max_id"),
            ("since_id=18446744073709551616", "since_id"),
            ("max_id=1&max_id=%FF", "max_id"),
            ("limit=0", "limit"),
            ("limit=00", "limit"),
            ("limit=-5", "limit"),
            ("limit=ten", "limit"),
            ("limit=", "limit"),
        ] {
            let path = format!("{path}?{query}");
            check_error(&world, &path, StatusCode::BAD_REQUEST, name).await;
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_an_error_in_json() {
    let world = World::new().await;
    for path in [
        "/nothing",
        "/api/v1/statuses/1",
        "/api/v1/statuses/1/history",
        "/api/v1/statuses/abc",
        "/api/v1/statuses/%FF",
        "/api/v1/statuses/18446744073709551615",
        "/api/v1/statuses/18446744073709551616",
        "/api/v1/lists/1",
        "/api/v1/lists/18446744073709551615",
        "/api/v1/timelines/list/1",
        "/api/v1/timelines/list/home",
        "/metrics",
    ] {
        check_error(&world, path, StatusCode::NOT_FOUND, "not found").await;
    }
}

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing() {
    let world = World::on(Fresh::sqlite(), |app| {
        app.metrics = Some(PrometheusBuilder::new().build_recorder().handle());
    })
    .await;
    let mut feed = world.feed("home").await;
    feed.poll(&[status(1), status(2)]).await;
    let public = world.page("/api/v1/timelines/public").await;
    let post = format!("/api/v1/statuses/{}", id(&public[0]));
    let named = json!({ "instance": "https://sim.example", "ids": ["5"] }).to_string();
    let url = |path: &str| format!("{}{path}", world.base);
    let naming = world.client.post(url("/api/v1/track/"));
    let naming = naming
        .header("content-type", "application/json")
        .body(named);
    assert_eq!(naming.send().await.unwrap().status(), StatusCode::ACCEPTED);
    for (path, query) in [
        ("/api/v1/instance", ""),
        ("/api/v2/instance", ""),
        ("/api/v1/timelines/public", "?limit=1"),
        (&feed.path(), "?limit=1"),
        (&post, ""),
        (&format!("{post}/history"), ""),
        ("/api/v1/lists", ""),
        (&format!("/api/v1/lists/{}", feed.source.id), ""),
        ("/api/v1/track", "?instance=sim.example"),
        ("/api/openapi.json", ""),
        ("/livez", ""),
        ("/readyz", ""),
        ("/metrics", ""),
    ] {
        let plain = world.answer(&format!("{path}{query}")).await;
        assert_eq!(plain.status(), StatusCode::OK, "{path}");
        let slashed = world.answer(&format!("{path}/{query}")).await;
        assert_eq!(slashed.status(), StatusCode::OK, "{path}/");
        assert_eq!(slashed.headers().get(LINK), plain.headers().get(LINK));
        assert_eq!(slashed.bytes().await.unwrap(), plain.bytes().await.unwrap());
    }
    for path in ["/nothing/", "/api/v1/statuses/1/"] {
        check_error(&world, path, StatusCode::NOT_FOUND, "not found").await;
    }
}

#[tokio::test]
async fn other_methods_are_refused_in_json() {
    let world = World::new().await;
    for method in [Method::POST, Method::DELETE] {
        let url = format!("{}/api/v1/timelines/public", world.base);
        let answer = world.client.request(method, url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert!(parsed(answer).await["error"].is_string());
    }
}

#[tokio::test]
async fn head_answers_without_a_body() {
    let world = World::new().await;
    world.feed("home").await.poll(&[status(1)]).await;
    let url = format!("{}/api/v1/timelines/public", world.base);
    let answer = world.client.head(url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("link"));
    assert!(answer.headers().contains_key("date"));
    assert!(answer.bytes().await.unwrap().is_empty());
}

#[tokio::test]
async fn any_page_in_a_browser_may_read() {
    let world = World::new().await;
    let url = format!("{}/api/v1/timelines/public", world.base);
    let ask = |method| {
        let request = world.client.request(method, &url);
        request.header("Origin", "https://app.example")
    };
    let answer = ask(Method::GET).send().await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    assert_eq!(answer.headers()["access-control-expose-headers"], "link");
    let preflight = ask(Method::OPTIONS)
        .header("Access-Control-Request-Method", "GET")
        .header("Access-Control-Request-Headers", "authorization");
    let answer = preflight.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    let wrong = format!("{url}?limit=0");
    let answer = world.client.get(wrong).send().await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
}

#[tokio::test]
async fn large_bodies_are_compressed() {
    let _ = client();
    let plain = Client::builder()
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .build()
        .unwrap();
    let world = World::new().await;
    let statuses: Vec<Status> = (1..=20).map(status).collect();
    world.feed("home").await.poll(&statuses).await;
    for (path, accepted, expected) in [
        ("timelines/public", "gzip", Some("gzip")),
        ("timelines/public", "br", Some("br")),
        ("timelines/public", "identity", None),
        ("timelines/public?max_id=1", "gzip, br", None),
    ] {
        let request = plain.get(format!("{}/api/v1/{path}", world.base));
        let answer = request.header("Accept-Encoding", accepted).send().await;
        let answer = answer.unwrap();
        let encoding = answer.headers().get("content-encoding");
        let encoding = encoding.map(|value| value.to_str().unwrap());
        assert_eq!(encoding, expected, "{path} {accepted}");
    }
    assert_eq!(world.page("/api/v1/timelines/public").await.len(), 20);
}

#[tokio::test]
async fn a_large_limit_means_the_largest() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    for turn in 0..2 {
        let statuses: Vec<Status> = (turn * 30..turn * 30 + 30).map(status).collect();
        feed.poll(&statuses).await;
    }
    for (query, count) in [
        ("", 20),
        ("?limit=1", 1),
        ("?limit=041", 40),
        ("?limit=99999999999999999999", 40),
    ] {
        let path = format!("/api/v1/timelines/public{query}");
        assert_eq!(world.page(&path).await.len(), count, "{query}");
    }
}

#[tokio::test]
async fn nothing_is_written_here() {
    let world = World::new().await;
    world.feed("home").await.poll(&[status(1)]).await;
    for (query, count) in [("local=true", 0), ("local=false", 1), ("remote=true", 1)] {
        let path = format!("/api/v1/timelines/public?{query}");
        assert_eq!(world.page(&path).await.len(), count, "{query}");
    }
}

#[tokio::test]
async fn an_error_inside_stays_inside() {
    let world = World::new().await;
    world.store.close().await;
    for path in [
        "/api/v1/timelines/public",
        "/api/v1/lists",
        "/api/v1/statuses/1",
    ] {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        check_error(&world, path, status, "The server's store does not work").await;
    }
    let ready = world.answer("/readyz").await;
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
}
