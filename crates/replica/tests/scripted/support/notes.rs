//! A library of notes.

use driftline_replica::ReplicaStatus;
use serde_json::{Value, json};

use super::{Device, Server};

pub const POST: &str = "note:https://a.example/1";
pub const OTHER: &str = "note:https://a.example/2";

pub fn note(text: &str) -> Value {
    json!({ "text": text })
}

pub fn object(key: &str, usn: u64, text: &str) -> Value {
    super::object(key, usn, &note(text))
}

#[expect(clippy::needless_pass_by_value, reason = "calls are shorter so")]
pub fn chunk(state: &str, cursor: &str, more: bool, objects: Value, gone: Value) -> Value {
    json!([{
        "library": "account", "state": state, "cursor": cursor, "more": more,
        "objects": objects, "gone": gone,
    }])
}

/// A device with these objects, whose cursor is `c9`.
pub async fn synced(server: &Server, objects: Value) -> Device {
    let device = Device::made(server).await;
    server.then_news(chunk("full", "c9", false, objects, json!([])));
    server.then_news(json!([]));
    device.sync(server).await.unwrap();
    assert_eq!(server.answers_left(), 0);
    server.requests();
    device
}

/// A device with two notes.
pub async fn with_two(server: &Server) -> Device {
    let notes = json!([object(POST, 3, "a"), object(OTHER, 4, "b")]);
    synced(server, notes).await
}

pub async fn status(device: &Device) -> ReplicaStatus {
    let replica = device.open().await;
    let status = replica.status().await.unwrap();
    replica.close().await;
    status
}

pub fn texts(objects: &[(String, Value)]) -> Vec<(&str, &str)> {
    let objects = objects.iter();
    objects
        .map(|(key, value)| (key.as_str(), value["text"].as_str().unwrap()))
        .collect()
}
