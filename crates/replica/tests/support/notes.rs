//! A library of notes.

use driftline_replica::ReplicaStatus;
use serde_json::{Value, json};

use super::{ACCOUNT, Answer, Device, SERVER, Server};

pub const POST: &str = "note:https://a.example/1";
pub const OTHER: &str = "note:https://a.example/2";

pub fn note(text: &str) -> Value {
    json!({ "text": text })
}

pub fn object(key: &str, usn: u64, text: &str) -> Value {
    json!({"key": key, "usn": usn.to_string(), "value": note(text)})
}

#[expect(clippy::needless_pass_by_value, reason = "calls are shorter so")]
pub fn chunk(state: &str, cursor: &str, more: bool, objects: Value, gone: Value) -> Value {
    json!([{
        "library": "account", "state": state, "cursor": cursor, "more": more,
        "objects": objects, "gone": gone,
    }])
}

/// The answer to a push of one change.
pub fn stored(key: &str, usn: u64, before: &str, after: &str) -> Answer {
    let results = json!([{"key": key, "status": "done", "usn": usn.to_string()}]);
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": before, "after": after, "results": results,
    });
    Answer::Json(200, answer)
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
