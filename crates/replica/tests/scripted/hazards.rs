//! Edits without a network that are sent whole and once, and replicas that lost their store.

use std::fs;

use driftline_replica::{InitOutcome, Replica, ReplicaError};
use serde_json::{Value, json};

use crate::support::{
    Answer, Device, Server,
    notes::{chunk, status, synced},
    object, stored,
};

const NOTE: &str = "note:https://a.example/1";
const LIST: &str = "list:0000000000000000000000000000000a";
const MEMBER: &str = "list-member:0000000000000000000000000000000a:ann@a.example";
const MARKER: &str = "marker:home";

fn list(title: &str) -> Value {
    json!({
        "title": title, "replies_policy": "none", "exclusive": true, "predicate": null, "notify": false,
    })
}

fn marker(place: u64) -> Value {
    json!({"last_read": place.to_string()})
}

#[tokio::test]
async fn a_member_that_comes_before_its_list_is_stored() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let member = [object(MEMBER, 2, &json!({"account": "7"}))];
    server.then_news(chunk("full", "c5", true, json!(member), json!([])));
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    let keys = |objects: Vec<(String, Value)>| {
        let mut keys: Vec<String> = objects.into_iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys(device.objects().await), [MEMBER]);

    let its_list = [object(LIST, 1, &list("cats"))];
    server.then_news(chunk("full", "c9", false, json!(its_list), json!([])));
    server.then_news(json!([]));
    device.sync(&server).await.unwrap();
    assert_eq!(keys(device.objects().await), [MEMBER, LIST]);
}

#[tokio::test]
async fn a_marker_that_moves_often_is_sent_once() {
    let server = Server::start();
    let device = synced(&server, json!([object(MARKER, 9, &marker(5))])).await;
    for place in [10, 20, 30] {
        assert!(device.edit(MARKER, Some(marker(place))).await);
    }
    server.then_news(json!([]));
    server.then(stored(&[(MARKER, 10)], "c9", "c10"));
    device.sync(&server).await.unwrap();
    let [_, push] = server.requests().try_into().unwrap();
    let expected = json!([{"key": MARKER, "base": "9", "value": marker(30)}]);
    assert_eq!(push.json()["changes"], expected);
    assert_eq!(status(&device).await.dirty, 0);
}

/// Each edit opens the replica and closes it again.
#[tokio::test]
async fn edits_without_a_network_are_sent_whole_after_a_restart() {
    let server = Server::start();
    let device = synced(&server, json!([object(LIST, 9, &list("cats"))])).await;
    device
        .edit(NOTE, Some(json!({"text": "first\nsecond"})))
        .await;
    device.edit(LIST, Some(list("dogs"))).await;
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    server.requests();

    server.then_news(json!([]));
    server.then(stored(&[(LIST, 10), (NOTE, 11)], "c9", "c11"));
    device.sync(&server).await.unwrap();
    let [_, push] = server.requests().try_into().unwrap();
    let expected = json!([
        {"key": LIST, "base": "9", "value": list("dogs")},
        {"key": NOTE, "base": "0", "value": {"text": "first\nsecond"}},
    ]);
    assert_eq!(push.json()["changes"], expected);
}

#[tokio::test]
async fn an_edit_is_clean_only_with_the_usn_that_the_server_returns() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(NOTE, Some(json!({"text": "a"}))).await;
    device.edit(MARKER, Some(marker(5))).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 10)], "c9", "c10"));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Malformed { .. }), "{error}");
    let kept = status(&device).await;
    assert_eq!((kept.dirty, kept.cursor.as_deref()), (2, Some("c9")));
    assert!(kept.is_push_pending);

    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 17), (MARKER, 18)], "c9", "c18"));
    device.sync(&server).await.unwrap();
    assert_eq!(status(&device).await.dirty, 0);
    let [_, first, _, again] = server.requests().try_into().unwrap();
    assert_eq!(first.body, again.body);
    device.edit(NOTE, None).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 19)], "c9", "c19"));
    // Other changes came before it, so a pull follows, and the cursor after the push is checked.
    server.then_news(chunk(
        "changes",
        "c19",
        false,
        json!([]),
        json!([{"key": NOTE, "usn": "19"}]),
    ));
    device.sync(&server).await.unwrap();
    let push = server.requests().swap_remove(1).json();
    assert_eq!(push["changes"][0]["base"], "17");
}

/// A browser may drop what a device has stored, and keep its token.
#[tokio::test]
async fn a_device_that_lost_its_store_begins_again_as_another_one() {
    let server = Server::start();
    let device = synced(&server, json!([object(MARKER, 9, &marker(5))])).await;
    device.edit(NOTE, Some(json!({"text": "a"}))).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 10)], "c9", "c10"));
    device.sync(&server).await.unwrap();
    device.edit(NOTE, Some(json!({"text": "lost"}))).await;
    let lost = status(&device).await.device;
    for file in fs::read_dir(device.folder()).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "token" {
            fs::remove_file(file.path()).unwrap();
        }
    }
    let none = Replica::open(&device.folder()).await.unwrap_err();
    assert!(matches!(none, ReplicaError::NoReplica(_)), "{none}");
    server.then_news(json!([]));
    assert_eq!(device.init(&server).await.unwrap(), InitOutcome::Made);
    let begun = status(&device).await;
    assert_ne!(begun.device, lost);
    assert_eq!((begun.dirty, begun.cursor), (0, None));

    // Nothing is deleted on the server, since nothing was deleted here.
    server.requests();
    let there = [
        object(NOTE, 10, &json!({"text": "a"})),
        object(MARKER, 9, &marker(5)),
    ];
    server.then_news(chunk("full", "c10", false, json!(there), json!([])));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.open_conflicts), (2, 0));
    let requests = server.requests();
    assert!(requests.iter().all(|request| !request.is_push()));
    assert_eq!(requests[0].cursor(), Value::Null);
    assert!(device.edit(NOTE, Some(json!({"text": "b"}))).await);
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 11)], "c10", "c11"));
    device.sync(&server).await.unwrap();
    let push = server.requests().pop().unwrap().json();
    assert_eq!(push["device"], begun.device);
    assert_eq!(
        (&push["sequence"], &push["previous"]),
        (&json!("1"), &json!(""))
    );
    assert_eq!(push["changes"][0]["base"], "10");
}

#[tokio::test]
async fn a_folder_without_a_replica_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let none = Replica::open(folder.path()).await.unwrap_err();
    assert!(matches!(none, ReplicaError::NoReplica(_)), "{none}");
    fs::write(folder.path().join("replica.db"), "").unwrap();
    let none = Replica::open(folder.path()).await.unwrap_err();
    assert!(matches!(none, ReplicaError::NoReplica(_)), "{none}");
}
