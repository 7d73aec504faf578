//! Bodies that are too large, or not what is expected.

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::{
    callers::Scene,
    operation::{Operation, description, operations},
};
use crate::world::client;

/// Bodies that are no object of JSON, and no form.
fn malformed(operation: &Operation) -> Vec<(&'static str, Vec<u8>)> {
    let json = "application/json";
    let mut all = vec![
        (json, b"{".to_vec()),
        (json, b"[]".to_vec()),
        (json, b"null".to_vec()),
        (json, b"\"a\"".to_vec()),
        (json, b"\xff\xfe{}".to_vec()),
        (json, "[".repeat(50_000).into_bytes()),
        (json, format!("{{\"a\":{}", "[".repeat(50_000)).into_bytes()),
        ("text/plain", b"x".to_vec()),
        ("multipart/form-data; boundary=x", b"--x".to_vec()),
    ];
    if !operation.is_json {
        all.push(("application/x-www-form-urlencoded", b"\xff=%ff%00".to_vec()));
    }
    all
}

/// Bodies with a member of another type each.
fn wrong_types(body: &Value) -> Vec<Value> {
    let members = body.as_object().into_iter().flatten();
    let changed = members.flat_map(|(name, _)| {
        [
            Value::Null,
            json!({}),
            json!([[]]),
            json!(1e300),
            json!(-1),
            json!("\u{0}\u{202e}"),
            json!("a".repeat(20_000)),
        ]
        .map(|other| {
            let mut body = body.clone();
            body[name] = other;
            body
        })
    });
    changed.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_make_no_sense_are_refused_and_break_nothing() {
    let description = description();
    let mut tried = 0;
    for operation in operations(&description) {
        let Some(sample) = operation.sample(&description, "1") else {
            continue;
        };
        // Each in a world of its own, where nobody has tried too often.
        let scene = Scene::new().await;
        // What is refused is not read to its end, and so its connection ends.
        let client = Client::builder().pool_max_idle_per_host(0).no_proxy();
        let client = client.build().unwrap();
        let address = format!(
            "{}{}",
            scene.world.base,
            operation.address(&description, "1")
        );
        let request = || {
            let method = operation.method.clone();
            client.request(method, &address)
        };
        for caller in &scene.callers {
            let sends = async |request: RequestBuilder| {
                let answer = caller.sends(request).send().await.unwrap();
                (answer.status(), answer.text().await.unwrap())
            };
            for (kind, body) in malformed(&operation) {
                let shown = String::from_utf8_lossy(&body[..body.len().min(20)]).into_owned();
                let what = format!("{} as {}: {kind} {shown}", operation.name(), caller.name);
                let (status, _) = sends(request().header("content-type", kind).body(body)).await;
                assert!(status.is_client_error(), "{what}: {status}");
                tried += 1;
            }
            for body in wrong_types(&sample) {
                let (kind, body) = operation.encoded(&body);
                let (status, _) = sends(request().header("content-type", kind).body(body)).await;
                let what = format!("{} as {}", operation.name(), caller.name);
                assert!(!status.is_server_error(), "{what}: {status}");
                tried += 1;
            }
        }
        scene.world.close().await;
    }
    assert!(tried > 1000, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_are_not_read() {
    let description = description();
    let scene = Scene::new().await;
    let mut answered = 0;
    for operation in operations(&description) {
        if !operation.has_body() {
            continue;
        }
        let address = operation.address(&description, "1");
        for caller in &scene.callers {
            // A connection of its own: what is too large is not read to its end, and so its connection ends.
            let request = client()
                .request(
                    operation.method.clone(),
                    format!("{}{address}", scene.world.base),
                )
                .header("content-type", "application/json")
                .body(" ".repeat(17 * 1024 * 1024));
            let Ok(answer) = caller.sends(request).send().await else {
                continue;
            };
            answered += 1;
            let status = answer.status();
            let is_refused = status == StatusCode::PAYLOAD_TOO_LARGE || status.is_client_error();
            assert!(
                is_refused,
                "{} as {}: {status}",
                operation.name(),
                caller.name
            );
            let is_for_anyone = operation.reads_no_token();
            if is_for_anyone {
                assert_eq!(
                    status,
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "{}",
                    operation.name()
                );
            }
        }
    }
    assert!(answered > 0);
    // It goes on serving.
    let answer = scene.world.answer("/livez").await;
    assert_eq!(answer.status(), StatusCode::OK);
    scene.world.close().await;
}
