//! Pushes whose answer is lost, or that the server does not take, and the changes that come although it does not.

use std::sync::Arc;

use driftline_core::sync::{DeviceIdentity, StoredPush};
use driftline_replica::{Direction, ReplicaError};
use serde_json::{Value, json};

use crate::support::{
    Answer, Device, Request, Server,
    notes::{OTHER, POST, chunk, note, object, status, synced, texts},
    sources::{self, HOME, all, names, part, posts},
    stored,
};

const FAVOURITE: &str = "favourite:https://a.example/1";

/// A device that has removed an addition, of which it does not know whether the server has it. Returns its push, too.
async fn with_removed_addition(server: &Server) -> (Device, Request) {
    let device = synced(server, json!([])).await;
    device.edit(FAVOURITE, Some(json!({}))).await;
    server.then_news(json!([]));
    server.then(Answer::Lost);
    device.lose_answer(server).await;
    let [_, push] = server.requests().try_into().unwrap();
    device.edit(FAVOURITE, None).await;
    (device, push)
}

/// The objects that come then: the addition, and a note of another device.
fn addition_and_note() -> [Value; 2] {
    let addition = json!({"key": FAVOURITE, "usn": "10", "value": {"post": "7"}});
    [addition, object(POST, 11, "a")]
}

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
    server.then(stored(&[(POST, 12)], "c11", "c12"));
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
    let (device, _) = with_removed_addition(&server).await;
    let both = json!(addition_and_note());
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
    server.then(stored(&[(POST, 11)], "c10", "c11"));
    let editor = Arc::clone(&device);
    server.meanwhile(async move || {
        assert!(editor.edit(OTHER, Some(note("b"))).await);
    });
    // Another device has made the same edit.
    let changed = json!([object(OTHER, 10, "b")]);
    server.then_news(chunk("changes", "c10", true, changed, json!([])));
    let pushed = device.sync_only(&server, Direction::Push).await;
    let report = pushed.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_push_whose_answer_was_lost_is_sent_again_as_it_was() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    assert!(device.edit(POST, Some(note("a"))).await);
    assert!(!device.edit(POST, Some(note("a"))).await);
    server.then_news(json!([]));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    let [pull, first] = server.requests().try_into().unwrap();
    assert!(!pull.is_push() && first.is_push());
    assert_eq!(first.json()["sequence"], "1");
    assert!(status(&device).await.is_push_pending);

    // Edited in between.
    assert!(device.edit(POST, Some(note("b"))).await);
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    server.then(stored(&[(POST, 11)], "c10", "c11"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (2, 0));
    let [_, again, second] = server.requests().try_into().unwrap();
    assert_eq!(again.body, first.body);
    let hash = StoredPush {
        identity: DeviceIdentity::new(0),
        full_sync: 0,
        changes: Vec::new(),
        body: first.body,
    };
    let second = second.json();
    assert_eq!(second["sequence"], "2");
    assert_eq!(second["previous"], hash.hash());
    assert_eq!(
        second["changes"],
        json!([{"key": POST, "base": "10", "value": note("b")}])
    );
    let status = status(&device).await;
    assert_eq!(status.cursor.as_deref(), Some("c11"));
    assert!(!status.is_push_pending);
}

#[tokio::test]
async fn a_device_of_which_the_server_has_another_record_takes_another_identity() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(409, json!({"error": "device"})));
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    let [_, first, _, second] = server.requests().try_into().unwrap();
    let (first, second) = (first.json(), second.json());
    assert_ne!(first["device"], second["device"]);
    assert_eq!(second["device"], status(&device).await.device.as_str());
    assert_eq!(
        (&second["sequence"], &second["previous"]),
        (&json!("1"), &json!(""))
    );
    assert_eq!(first["changes"], second["changes"]);
}

#[tokio::test]
async fn a_push_that_is_too_long_is_sent_in_parts() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(413, json!({"error": "too long"})));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    server.then(stored(&[(OTHER, 11)], "c10", "c11"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (2, 0, 0)
    );
    let requests = server.requests();
    let sequences: Vec<Value> = requests[1..]
        .iter()
        .map(|request| request.json()["sequence"].clone())
        .collect();
    assert_eq!(sequences, ["1", "1", "2"]);
}

#[tokio::test]
async fn an_addition_that_is_removed_after_its_answer_was_lost_stays_removed() {
    let server = Server::start();
    let (device, first) = with_removed_addition(&server).await;
    let both = json!(addition_and_note());
    server.then_news(chunk("changes", "c11", false, both, json!([])));
    server.then(stored(&[(FAVOURITE, 10)], "c9", "c10"));
    let other = json!([object(POST, 11, "a")]);
    server.then_news(chunk("changes", "c11", false, other, json!([])));
    server.then(stored(&[(FAVOURITE, 12)], "c9", "c12"));
    let gone = [json!({"key": FAVOURITE, "usn": "12"})];
    server.then_news(chunk("changes", "c12", false, json!([]), json!(gone)));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.new_conflicts, report.dirty), (0, 0));
    let [before, again, pull, push, _] = server.requests().try_into().unwrap();
    assert_eq!(
        (before.cursor(), pull.cursor()),
        (json!("c9"), json!("c10"))
    );
    assert_eq!(again.body, first.body);
    let expected = json!([{"key": FAVOURITE, "base": "10", "value": null}]);
    assert_eq!(push.json()["changes"], expected);
    let objects = device.objects().await;
    assert_eq!(objects, [(POST.to_owned(), note("a"))]);
}
