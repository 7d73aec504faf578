//! IDs over HTTP.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, Response},
};
use driftline_id::{ClockPolicy, Layout, clock::ManualClock};
use driftline_id_service::{NodeChoice, Service, Settings, SharedClock, router};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::support::{START_MS, node};

struct World {
    service: Service,
    router: Router,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at_ms(START_MS);
        let settings = Settings {
            node: NodeChoice::Configured {
                node: node(37),
                folder: folder.path().to_owned(),
            },
            policy: ClockPolicy::Refuse,
            peers: Vec::new(),
            skip_sanity_check: false,
        };
        let shared: SharedClock = Arc::new(clock.clone());
        let stopped = watch::channel(false).1;
        let service = Service::start(settings, shared, stopped).await.unwrap();
        Self {
            router: router(&service),
            service,
            clock,
            _folder: folder,
        }
    }

    async fn ask(&self, method: &str, path: &str, accept: Option<&str>) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let request = request.body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn json(&self, method: &str, path: &str) -> (u16, Value) {
        let answer = self.ask(method, path, None).await;
        (
            answer.status().as_u16(),
            serde_json::from_slice(&body(answer).await).unwrap(),
        )
    }
}

async fn body(answer: Response<Body>) -> Vec<u8> {
    to_bytes(answer.into_body(), usize::MAX)
        .await
        .unwrap()
        .to_vec()
}

/// The first ID of the node at the clock's time.
fn first() -> u64 {
    u64::try_from(Layout::TWITTER.smallest_at(START_MS)).unwrap() | 37 << 12
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_come_as_strings_lines_or_bytes() {
    let world = World::new().await;
    let ids = |from: u64, count: u64| (first() + from..first() + from + count).collect::<Vec<_>>();
    let strings = |ids: Vec<u64>| ids.iter().map(u64::to_string).collect::<Vec<_>>();
    assert_eq!(
        world.json("POST", "/api/v1/ids").await,
        (200, json!(strings(ids(0, 1))))
    );
    assert_eq!(
        world.json("POST", "/api/v1/ids?count=3").await,
        (200, json!(strings(ids(1, 3))))
    );
    let lines = world
        .ask("POST", "/api/v1/ids?count=2", Some("text/plain"))
        .await;
    assert_eq!(lines.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(lines.headers()["cache-control"], "no-store");
    let text = String::from_utf8(body(lines).await).unwrap();
    assert_eq!(text, strings(ids(4, 2)).join("\n") + "\n");
    let binary = "application/octet-stream";
    let bytes = world.ask("POST", "/api/v1/ids?count=2", Some(binary)).await;
    assert_eq!(bytes.headers()["content-type"], binary);
    let expected: Vec<u8> = ids(6, 2).iter().flat_map(|id| id.to_be_bytes()).collect();
    assert_eq!(body(bytes).await, expected);
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accept_is_weighed() {
    let world = World::new().await;
    for (accept, expected) in [
        ("*/*", "application/json"),
        ("text/*", "text/plain; charset=utf-8"),
        (
            "application/json;q=0.5, text/plain",
            "text/plain; charset=utf-8",
        ),
        (
            "image/png, application/octet-stream;q=0.1",
            "application/octet-stream",
        ),
        ("application/*", "application/json"),
    ] {
        let answer = world.ask("POST", "/api/v1/ids", Some(accept)).await;
        assert_eq!(answer.headers()["content-type"], expected, "{accept}");
    }
    for (accept, status) in [
        ("image/png", 406),
        ("application/json;q=0", 406),
        ("///", 400),
    ] {
        let answer = world.ask("POST", "/api/v1/ids", Some(accept)).await;
        assert_eq!(answer.status().as_u16(), status, "{accept}");
    }
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_that_make_no_sense_are_refused() {
    let world = World::new().await;
    for count in [
        "0",
        "-1",
        "100001",
        "many",
        "",
        "1e3",
        "99999999999999999999",
    ] {
        let (status, body) = world
            .json("POST", &format!("/api/v1/ids?count={count}"))
            .await;
        assert_eq!(status, 400, "{count}");
        let error = body["error"].as_str().unwrap();
        assert!(error.contains("between 1 and 100000"), "{error}");
    }
    // Nothing was taken for them.
    let (_, ids) = world.json("POST", "/api/v1/ids").await;
    assert_eq!(ids, json!([first().to_string()]));
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_behind_is_503() {
    let world = World::new().await;
    world.json("POST", "/api/v1/ids").await;
    world.clock.advance_us(-30_000);
    let (status, body) = world.json("POST", "/api/v1/ids?count=5").await;
    assert_eq!(status, 503);
    assert!(
        body["error"].as_str().unwrap().contains("30 ms behind"),
        "{body}"
    );
    world.clock.advance_us(30_000);
    assert_eq!(world.json("POST", "/api/v1/ids").await.0, 200);
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_taken_apart() {
    let world = World::new().await;
    let (status, decoded) = world.json("GET", "/api/v1/ids/1050118621198921728").await;
    assert_eq!(status, 200);
    assert_eq!(
        decoded,
        json!({
            "layout": "twitter",
            "id": "1050118621198921728",
            "decimal": "1050118621198921728",
            "time_ms": 1_539_202_764_211_i64,
            "time": "2018-10-10T20:19:24.211Z",
            "fields": {"datacenter": "10", "worker": "27", "sequence": "0"},
        })
    );
    let path = "/api/v1/ids/01ARZ3NDEKTSV4RRFFQ69G5FAV?layout=ulid";
    let (status, decoded) = world.json("GET", path).await;
    assert_eq!((status, &decoded["layout"]), (200, &json!("ulid")));
    for path in [
        "/api/v1/ids/nonsense",
        "/api/v1/ids/%FF",
        "/api/v1/ids/1?layout=none",
    ] {
        let (status, body) = world.json("GET", path).await;
        assert_eq!(status, 400, "{path}");
        assert!(body["error"].is_string());
    }
    world.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_tells_its_state() {
    let world = World::new().await;
    let (status, state) = world.json("GET", "/api/v1/ids").await;
    assert_eq!(status, 200);
    assert_eq!(state["node"], 37);
    assert_eq!(state["fields"], json!({"datacenter": 1, "worker": 5}));
    assert_eq!(state["now_ms"], START_MS);
    assert_eq!(state["window_until_ms"], START_MS + 5_000);
    assert_eq!(state["clock_offset_ms"], Value::Null);
    let (status, _) = world.json("DELETE", "/api/v1/ids").await;
    assert_eq!(status, 405);
    world.service.stop().await;
}

/// What is described is what there is.
#[tokio::test(flavor = "multi_thread")]
async fn the_description_names_every_route() {
    let world = World::new().await;
    let (status, description) = world.json("GET", "/api/openapi.json").await;
    assert_eq!(status, 200);
    assert!(description["openapi"].as_str().unwrap().starts_with("3."));
    let paths = description["paths"].as_object().unwrap();
    let named: Vec<(&String, Vec<&String>)> = paths
        .iter()
        .map(|(path, methods)| (path, methods.as_object().unwrap().keys().collect()))
        .collect();
    let expected = [
        ("/api/v1/ids", vec!["get", "post"]),
        ("/api/v1/ids/{id}", vec!["get"]),
    ];
    assert_eq!(format!("{named:?}"), format!("{expected:?}"));
    let forms = &paths["/api/v1/ids"]["post"]["responses"]["200"]["content"];
    assert_eq!(forms.as_object().unwrap().len(), 3);
    world.service.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_take_no_ids() {
    let world = World::new().await;
    let send = async |headers: &[(&str, &str)]| {
        let mut request = Request::builder().method("POST").uri("/api/v1/ids");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = world.router.clone().oneshot(request).await.unwrap();
        answer.status().as_u16()
    };
    let host = ("host", "127.0.0.1:7610");
    for strange in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(send(&[host, strange]).await, 403, "{strange:?}");
    }
    assert_eq!(send(&[host]).await, 200);
    assert_eq!(
        send(&[host, ("origin", "http://127.0.0.1:7610")]).await,
        200
    );
}
