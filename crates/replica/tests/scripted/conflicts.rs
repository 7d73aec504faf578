//! Edits that the server refuses, and objects that it has lost.

use driftline_core::sync::{ConflictReason, ObjectKey};
use driftline_replica::{ReplicaError, Resolution};
use serde_json::json;

use crate::support::{
    ACCOUNT, Answer, SERVER, Server,
    notes::{OTHER, POST, chunk, note, object, status, synced, texts, with_two},
    stored,
};

#[tokio::test]
async fn what_the_server_refuses_is_a_conflict_and_not_sent_again() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(POST, None).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then_news(json!([]));
    let results = json!([
        {"key": POST, "status": "conflict", "usn": "8", "value": note("c")},
        {"key": OTHER, "status": "refused", "reason": "there is no such post"},
    ]);
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": "c9", "after": "c9", "results": results,
    });
    server.then(Answer::Json(200, answer));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (0, 0, 2)
    );
    assert_eq!(texts(&device.objects().await), [(POST, "c")]);
    let replica = device.open().await;
    let conflicts = replica.conflicts(false).await.unwrap();
    let details = conflicts.iter().map(|of| of.detail.as_deref());
    assert_eq!(
        details.collect::<Vec<_>>(),
        [None, Some("there is no such post")]
    );
    replica
        .resolve(conflicts[1].id, Resolution::Theirs)
        .await
        .unwrap();
    // A person merges the other one by hand.
    let key = ObjectKey::parse(POST).unwrap();
    replica.edit(key, Some(note("merged"))).await.unwrap();
    let open = replica.conflicts(false).await.unwrap();
    assert_eq!((open.len(), open[0].mine.as_ref()), (1, None));
    assert_eq!(open[0].theirs, Some(note("c")));
    assert_eq!(replica.conflicts(true).await.unwrap().len(), 2);
    replica.close().await;
}

#[tokio::test]
async fn a_change_that_an_older_server_rejects_holds_up_no_other() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(POST, Some(note("b"))).await;
    device.edit(OTHER, Some(note("c"))).await;
    server.then_news(json!([]));
    let rejected = |status| Answer::Json(status, json!({"error": "an invalid key"}));
    server.then(rejected(422));
    server.then(rejected(400));
    server.then(stored(&[(OTHER, 10)], "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(
        (report.work.pushed, report.dirty, report.open_conflicts),
        (1, 0, 1)
    );
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "c")]);
    let replica = device.open().await;
    let conflict = replica.conflicts(false).await.unwrap().remove(0);
    replica.close().await;
    assert_eq!(conflict.key.as_str(), POST);
    assert_eq!(conflict.reason, ConflictReason::Refused);
    assert_eq!(conflict.detail.as_deref(), Some("an invalid key"));
    assert_eq!(conflict.mine, Some(note("b")));
    let pushes = server.requests()[1..]
        .iter()
        .map(|request| request.json())
        .map(|push| {
            (
                push["sequence"].clone(),
                push["changes"].as_array().unwrap().len(),
            )
        })
        .collect::<Vec<_>>();
    assert_eq!(pushes, [(json!("1"), 2), (json!("1"), 1), (json!("1"), 1)]);
}

#[tokio::test]
async fn an_answer_without_the_servers_words_refuses_no_change() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    server.then(Answer::Json(400, json!("Bad Request")));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Rejected { .. }), "{error}");
    let status = status(&device).await;
    assert_eq!((status.dirty, status.open_conflicts), (1, 0));
}

#[tokio::test]
async fn what_a_server_lost_is_offered_back() {
    let server = Server::start();
    let device = with_two(&server).await;
    let diverged = json!([{"library": "account", "state": "diverged"}]);
    server.then_news(diverged);
    server.then_news(chunk(
        "full",
        "d3",
        false,
        json!([object(POST, 3, "a")]),
        json!([]),
    ));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.removed, report.open_conflicts), (0, 1));
    assert!(server.requests().iter().all(|request| !request.is_push()));

    let replica = device.open().await;
    let conflicts = replica.conflicts(false).await.unwrap();
    let [conflict] = conflicts.as_slice() else {
        panic!("{conflicts:?}");
    };
    assert_eq!(conflict.reason, ConflictReason::LostByServer);
    assert_eq!(conflict.mine, Some(note("b")));
    let resolved = replica
        .resolve(conflict.id, Resolution::Mine)
        .await
        .unwrap();
    assert_eq!(resolved.as_str(), OTHER);
    let again = replica.resolve(conflict.id, Resolution::Mine).await;
    assert!(
        matches!(again, Err(ReplicaError::NoConflict(_))),
        "{again:?}"
    );
    replica.close().await;
    server.then_news(json!([]));
    server.then(stored(&[(OTHER, 4)], "d3", "d4"));
    device.sync(&server).await.unwrap();
    let push = server.requests().pop().unwrap().json();
    assert_eq!(
        push["changes"],
        json!([{"key": OTHER, "base": "0", "value": note("b")}])
    );
}

#[tokio::test]
async fn what_another_device_changes_during_a_reconciliation_is_not_lost() {
    let server = Server::start();
    let device = with_two(&server).await;
    server.then_news(json!([{"library": "account", "state": "diverged"}]));
    let full = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "d8", false, full, json!([])));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    assert!(!status(&device).await.is_complete);
    let changed = json!([object(OTHER, 9, "c")]);
    server.then_news(chunk("changes", "d9", false, changed, json!([])));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.removed, report.open_conflicts), (0, 0));
    assert!(status(&device).await.is_complete);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "c")]);
}
