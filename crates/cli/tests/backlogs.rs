//! A backlog of several pages is stored in the order of its source: over real sockets, with servers that know `min_id`
//! and servers that do not, with and without a stream, and killed in the middle.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use support::{DataDir, wait_for};
use tokio::sync::broadcast;

/// A list of posts, which grows when the test says so.
struct List {
    /// The IDs, which carry the time as Mastodon's do; the oldest first.
    ids: Vec<u64>,
    knows_min_id: bool,
    is_down: bool,
    /// Pages that were answered.
    pages: u64,
    events: broadcast::Sender<Option<String>>,
}

type Shared = Arc<Mutex<List>>;

#[derive(Deserialize)]
struct Bounds {
    limit: usize,
    max_id: Option<u64>,
    since_id: Option<u64>,
    min_id: Option<u64>,
}

impl List {
    fn publish(&mut self, count: u64, apart_ms: u64) {
        let now_ms = driftline_runtime::now_ms().unsigned_abs();
        for n in 0..count {
            let id = ((now_ms - (count - 1 - n) * apart_ms) << 16) + n;
            self.ids.push(id);
            let event = format!("event: update\ndata: {}\n\n", status(id));
            let _ = self.events.send(Some(event));
        }
        assert!(self.ids.is_sorted());
    }

    fn page(&mut self, of: &Bounds) -> Vec<Value> {
        self.pages += 1;
        let min_id = of.min_id.filter(|_| self.knows_min_id);
        let above = min_id.max(of.since_id).unwrap_or(0);
        let below = of.max_id.unwrap_or(u64::MAX);
        let ids = self.ids.iter().copied();
        let ids = ids.filter(|id| *id > above && *id < below);
        let mut ids: Vec<u64> = match min_id {
            Some(_) => ids.take(of.limit).collect(),
            None => ids.rev().take(of.limit).collect(),
        };
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.into_iter().map(status).collect()
    }
}

fn status(id: u64) -> Value {
    let created_at = jiff::Timestamp::from_millisecond((id >> 16).cast_signed()).unwrap();
    json!({
        "id": id.to_string(),
        "created_at": created_at.to_string(),
        "visibility": "public",
        "content": "<p>a post</p>",
        "account": { "id": "7", "acct": "ann", "username": "ann" },
    })
}

async fn home(State(list): State<Shared>, Query(of): Query<Bounds>) -> Response {
    // Long enough to be killed in the middle.
    tokio::time::sleep(Duration::from_millis(60)).await;
    let mut list = list.lock().unwrap();
    match list.is_down {
        true => StatusCode::BAD_GATEWAY.into_response(),
        false => Json(list.page(&of)).into_response(),
    }
}

async fn events(State(list): State<Shared>) -> Response {
    let list = list.lock().unwrap();
    if list.is_down {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let events = stream::unfold(list.events.subscribe(), async |mut events| {
        let event = events.recv().await.ok()??;
        Some((Ok::<_, Infallible>(event), events))
    });
    let response = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    response.body(Body::from_stream(events)).unwrap()
}

async fn serve(list: &Shared) -> String {
    let app = Router::new()
        .route("/api/v1/timelines/home", get(home))
        .route("/api/v1/streaming/user", get(events))
        .with_state(Arc::clone(list));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, app).into_future());
    url
}

/// The source's posts, in the order of their local IDs.
fn stored(data_dir: &DataDir) -> Vec<u64> {
    let number = |row: &Value, name: &str| row[name].as_str().unwrap().parse::<u64>().unwrap();
    let rows = data_dir.export("list");
    let rows = rows.iter();
    let mut ids: Vec<(u64, u64)> = rows
        .map(|row| (number(row, "id"), number(row, "upstream_id")))
        .collect();
    ids.sort_unstable();
    ids.into_iter()
        .map(|(_, upstream_id)| upstream_id)
        .collect()
}

async fn backlogs_are_in_order(knows_min_id: bool, stream: &str) {
    let (events, _) = broadcast::channel(1_000);
    let list: Shared = Arc::new(Mutex::new(List {
        ids: Vec::new(),
        knows_min_id,
        is_down: false,
        pages: 0,
        events,
    }));
    let with = |change: &dyn Fn(&mut List)| change(&mut list.lock().unwrap());
    with(&|list| list.publish(5, 1_000));
    let url = serve(&list).await;
    let data_dir = DataDir::new();
    let token = data_dir.file("token", "secret");
    let (server, _) = data_dir.serve(&["--allow-private"]);
    let mut add = vec![
        "source",
        "add",
        &url,
        "--timeline",
        "home",
        "--name",
        "list",
    ];
    add.extend([
        "--token-file",
        &token,
        "--backfill",
        "none",
        "--stream",
        stream,
    ]);
    add.extend(["--every", "500ms", "--spacing", "50ms"]);
    data_dir.json(&add);
    let all_are_stored = |when: &str| {
        let published = list.lock().unwrap().ids.clone();
        wait_for(&format!("all posts are stored, {when}"), || {
            stored(&data_dir).len() == published.len()
        });
        assert_eq!(stored(&data_dir), published, "{when}");
    };
    all_are_stored("at first");

    with(&|list| list.publish(70, 1));
    all_are_stored("after a burst");

    with(&|list| {
        list.is_down = true;
        let _ = list.events.send(None);
    });
    std::thread::sleep(Duration::from_millis(1_500));
    with(&|list| {
        list.publish(200, 5);
        list.is_down = false;
        list.pages = 0;
    });
    // The first two pages are read, which are not all.
    wait_for("the backlog is begun", || list.lock().unwrap().pages >= 2);
    server.kill();
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    // News comes while the backlog is read.
    wait_for("it is read again", || list.lock().unwrap().pages > 2);
    with(&|list| list.publish(3, 1));
    all_are_stored("after an outage and a crash");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_min_id() {
    backlogs_are_in_order(true, "off").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_min_id_and_with_a_stream() {
    backlogs_are_in_order(false, "sse").await;
}
