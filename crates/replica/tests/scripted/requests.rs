//! Requests: where they begin, how much each asks for, and how often it is sent.

use driftline_replica::{ReplicaError, Retries};
use serde_json::{Value, json};

use crate::support::{
    Answer, Device, NOW_MS, QUICK, Request, Server,
    notes::{OTHER, POST, chunk, object, status, synced, texts},
};

#[tokio::test]
async fn an_interrupted_full_sync_goes_on_at_its_cursor() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    let cursors = server.requests();
    let cursors: Vec<Value> = cursors.iter().map(Request::cursor).collect();
    assert_eq!(cursors, [Value::Null, json!("c5")]);
    assert_eq!(texts(&device.objects().await), [(OTHER, "b")]);
    assert!(!status(&device).await.is_complete);

    let oldest = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "c9", false, oldest, json!([])));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.work.removed), (1, 0));
    let cursors = server.requests();
    let cursors: Vec<Value> = cursors.iter().map(Request::cursor).collect();
    assert_eq!(cursors, [json!("c5"), json!("c9")]);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "b")]);
    let status = status(&device).await;
    assert!(status.is_complete);
    assert_eq!(status.synced_at_ms, Some(NOW_MS));
}

/// The sizes that the requests since the last call have asked for.
fn sizes(server: &Server) -> Vec<Value> {
    let requests = server.requests().into_iter();
    requests
        .map(|request| request.json()["max_bytes"].clone())
        .collect()
}

#[tokio::test]
async fn after_a_lost_answer_and_in_a_full_sync_that_goes_on_chunks_are_small() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let retries = Retries {
        max_tries: 2,
        backoff: QUICK,
    };
    server.then(Answer::Lost);
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(Answer::Lost);
    server.then(Answer::Lost);
    let error = device.sync_with(&server, retries, false).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
    assert_eq!(sizes(&server), [125_000, 50_000, 50_000, 50_000]);
    let oldest = json!([object(POST, 3, "a")]);
    server.then_news(chunk("full", "c9", false, oldest, json!([])));
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [25_000, 25_000]);
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [125_000]);
}

#[tokio::test]
async fn chunks_become_smaller_with_each_sync_whose_answer_is_lost() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    // Nothing was lost by a request that was not sent.
    device.lose_answer(&Server::refusing()).await;
    for bytes in [125_000, 50_000, 25_000] {
        server.then(Answer::Lost);
        device.lose_answer(&server).await;
        assert_eq!(sizes(&server), [bytes]);
    }
    let objects = json!([object(POST, 10, "a")]);
    server.then_news(chunk("changes", "c10", false, objects, json!([])));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [12_500]);
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(sizes(&server), [125_000]);
}

#[tokio::test]
async fn answers_of_a_proxy_are_told_from_refusals() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let json = |status| Answer::Json(status, json!({"error": "maintenance"}));
    for (answer, may_be_of_proxy) in [
        (json(302), true),
        (json(404), true),
        (Answer::Events("<html>maintenance</html>"), true),
        (json(401), false),
        (json(400), false),
    ] {
        server.then(answer.clone());
        let error = device.sync(&server).await.unwrap_err();
        assert_eq!(error.may_be_of_proxy(), may_be_of_proxy, "{answer:?}");
    }
}

#[tokio::test]
async fn a_request_is_sent_four_times_at_most() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let retries = Retries {
        backoff: QUICK,
        ..Retries::few()
    };
    let busy = || Answer::Json(503, json!({"error": "busy"}));
    for answer in [busy(), Answer::Lost, busy()] {
        server.then(answer);
    }
    server.then_news(json!([]));
    device.sync_with(&server, retries, false).await.unwrap();
    assert_eq!(server.requests().len(), 4);
    for _ in 0..4 {
        server.then(busy());
    }
    let error = device.sync_with(&server, retries, false).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Busy { status: 503, .. }),
        "{error}"
    );
    assert_eq!(server.requests().len(), 4);
}
