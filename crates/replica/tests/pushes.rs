//! Pushes that the server does not take, and the changes that come although it does not.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use driftline_replica::{Direction, ReplicaError, SyncContext};
use serde_json::json;
use support::{
    Answer, NOW_MS, Request, Server,
    notes::{OTHER, POST, chunk, note, object, status, stored, synced, texts},
    random,
    sources::{self, HOME, all, names, part, posts},
};

const FAVOURITE: &str = "favourite:https://a.example/1";

#[tokio::test]
async fn a_server_that_takes_no_pushes_still_delivers_changes() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    for (usn, cursor) in [(10, "c10"), (11, "c11")] {
        let changed = json!([object(OTHER, usn, cursor)]);
        server.then_news(chunk("changes", cursor, false, changed, json!([])));
        server.then(Answer::Json(503, json!({"error": "read only"})));
        let error = device.sync(&server).await.unwrap_err();
        assert!(
            matches!(error, ReplicaError::Busy { status: 503, .. }),
            "{error}"
        );
        let [pull, push] = server.requests().try_into().unwrap();
        assert!(!pull.is_push() && push.is_push());
        let objects = device.objects().await;
        assert_eq!(texts(&objects), [(POST, "a"), (OTHER, cursor)]);
    }
    server.then_news(json!([]));
    server.then(stored(POST, 12, "c11", "c12"));
    assert_eq!(device.sync(&server).await.unwrap().work.pushed, 1);
}

#[tokio::test]
async fn posts_come_although_the_server_takes_no_push() {
    let server = Server::start();
    let device = sources::synced(&server, &[(HOME, "home", posts([1]))]).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([part(HOME, "changes", "s10", true, &posts([2]))]));
    server.then(Answer::Json(503, json!({"error": "read only"})));
    server.then_news(json!([part(HOME, "changes", "s11", false, &posts([3]))]));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Busy { .. }), "{error}");
    assert_eq!(names(&device, all()).await, ["p3", "p2", "p1"]);
    assert_eq!(server.answers_left(), 0);
}

#[tokio::test]
async fn changes_come_although_a_removed_addition_cannot_be_sent_again() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(FAVOURITE, Some(json!({}))).await;
    server.then_news(json!([]));
    server.then(Answer::Lost);
    device.sync(&server).await.unwrap_err();
    device.edit(FAVOURITE, None).await;
    server.requests();

    let own = json!({"key": FAVOURITE, "usn": "10", "value": {"post": "7"}});
    let both = json!([own, object(POST, 11, "a")]);
    let news = chunk("changes", "c11", false, both, json!([]));
    server.then_news(news.clone());
    server.then(Answer::Json(503, json!({"error": "read only"})));
    server.then_news(news);
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Busy { .. }), "{error}");
    let are_pushes: Vec<bool> = server.requests().iter().map(Request::is_push).collect();
    assert_eq!(are_pushes, [false, true, false]);
    let keys: Vec<String> = device.objects().await.into_iter().map(|of| of.0).collect();
    assert_eq!(keys, [FAVOURITE, POST]);
    assert_eq!(status(&device).await.cursor.as_deref(), Some("c11"));
    // The removal is listed.
    let replica = device.open().await;
    let conflicts = replica.conflicts(true).await.unwrap();
    replica.close().await;
    let keys: Vec<&str> = conflicts.iter().map(|of| of.key.as_str()).collect();
    assert_eq!(keys, [FAVOURITE]);
}

/// After a push, the changes that were stored decide whether another request follows.
#[tokio::test]
async fn a_push_requests_no_chunk_that_it_does_not_need() {
    let server = Server::start();
    let device = Arc::new(synced(&server, json!([])).await);
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    server.then(stored(POST, 11, "c10", "c11"));
    let editor = Arc::clone(&device);
    server.meanwhile(async move || {
        assert!(editor.edit(OTHER, Some(note("b"))).await);
    });
    // Another device has made the same edit.
    let changed = json!([object(OTHER, 10, "b")]);
    server.then_news(chunk("changes", "c10", true, changed, json!([])));
    let replica = device.open().await;
    let mut random = random;
    let mut context = SyncContext::new(NOW_MS, &mut random);
    let client = device.client(&server);
    let pushed = replica.sync(&client, &mut context, Direction::Push).await;
    replica.close().await;
    let report = pushed.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    assert_eq!(server.requests().len(), 3);
}
