//! Several processes with one replica: a sync and edits at once, and a process that is killed.

use std::{fs, sync::Arc};

use driftline_core::sync::ObjectKey;
use driftline_replica::ReplicaError;
use serde_json::json;

use crate::support::{
    Answer, Device, Server,
    notes::{OTHER, POST, note, object, synced, texts},
    stored,
};

#[tokio::test]
async fn one_process_syncs_a_replica_while_others_edit_it() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let lock = fs::File::open(device.folder().join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(device.edit(POST, Some(note("a"))).await);
    assert_eq!(texts(&device.objects().await), [(POST, "a")]);
    // No request is sent, so nothing but the wait for the lock needs the time.
    tokio::time::pause();
    let of_sync = device.sync(&server).await.unwrap_err();
    let of_init = device.init(&server).await.unwrap_err();
    tokio::time::resume();
    for locked in [of_sync, of_init] {
        assert!(matches!(locked, ReplicaError::Locked(_)), "{locked}");
        assert!(locked.may_pass());
    }
    assert!(server.requests().is_empty());
    drop(lock);
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    assert_eq!(device.sync(&server).await.unwrap().work.pushed, 1);
}

#[tokio::test]
async fn edits_during_requests_are_stored_at_once_and_sent() {
    let server = Server::start();
    let device = Arc::new(synced(&server, json!([object(POST, 3, "a")])).await);
    device.edit(OTHER, Some(note("b"))).await;
    let edit = |text: &'static str| {
        let device = Arc::clone(&device);
        server.meanwhile(async move || {
            assert!(device.edit(POST, Some(note(text))).await);
            let objects = device.objects().await;
            assert_eq!(texts(&objects), [(POST, text), (OTHER, "b")]);
        });
    };
    server.then_news(json!([]));
    edit("c");
    server.then(stored(&[(OTHER, 10), (POST, 11)], "c9", "c11"));
    edit("d");
    server.then(stored(&[(POST, 12)], "c11", "c12"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (3, 0));
    let [_, first, second] = server.requests().try_into().unwrap();
    assert_eq!(first.json()["changes"][1]["value"], note("c"));
    assert_eq!(
        second.json()["changes"],
        json!([{"key": POST, "base": "11", "value": note("d")}])
    );
    assert_eq!(texts(&device.objects().await), [(POST, "d"), (OTHER, "b")]);
}

/// A change that is too long may be made shorter while it is sent.
#[tokio::test]
async fn an_edit_of_what_is_too_long_is_not_refused() {
    let server = Server::start();
    let device = Arc::new(synced(&server, json!([])).await);
    device.edit(POST, Some(note("long"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(413, json!({"error": "too long"})));
    let editing = Arc::clone(&device);
    server.meanwhile(async move || assert!(editing.edit(POST, Some(note("a"))).await));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (1, 0, 0)
    );
    let push = server.requests().pop().unwrap().json();
    assert_eq!(push["changes"][0]["value"], note("a"));
}

#[tokio::test]
async fn edits_survive_the_end_of_their_process_whole() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    let replica = device.open().await;
    for (key, text) in [(POST, "b"), (OTHER, "c")] {
        let key = ObjectKey::parse(key).unwrap();
        replica.edit(key, Some(note(text))).await.unwrap();
    }
    // The files that a process leaves that is killed now.
    let left = Device::new();
    fs::create_dir(left.folder()).unwrap();
    for file in fs::read_dir(device.folder()).unwrap() {
        let file = file.unwrap();
        if !file.file_name().to_string_lossy().ends_with("-shm") {
            fs::copy(file.path(), left.folder().join(file.file_name())).unwrap();
        }
    }
    replica.close().await;
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10), (OTHER, 11)], "c9", "c11"));
    let report = left.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (2, 0));
    let push = server.requests().pop().unwrap().json();
    assert_eq!(
        push["changes"],
        json!([
            {"key": POST, "base": "3", "value": note("b")},
            {"key": OTHER, "base": "0", "value": note("c")},
        ])
    );
}
