//! Edits without a network that are sent whole and once, and answers of which a replica stores all or nothing.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use driftline_core::sync::ObjectKey;
use driftline_replica::{InitOutcome, Replica, ReplicaError};
use serde_json::{Value, json};
use support::{
    ACCOUNT, Answer, Device, ONCE, SERVER, Server,
    notes::{chunk, status, synced},
};

const NOTE: &str = "note:https://a.example/1";
const LIST: &str = "list:0000000000000000000000000000000a";
const MEMBER: &str = "list-member:0000000000000000000000000000000a:ann@a.example";
const MARKER: &str = "marker:home";
const FAVOURITE: &str = "favourite:https://a.example/1";

fn object(key: &str, usn: u64, value: &Value) -> Value {
    json!({"key": key, "usn": usn.to_string(), "value": value})
}

/// The answer to a push after the cursor `c9`.
fn stored(changes: &[(&str, u64)], after: &str) -> Answer {
    let result =
        |(key, usn): &(&str, u64)| json!({"key": key, "status": "done", "usn": usn.to_string()});
    let results: Vec<Value> = changes.iter().map(result).collect();
    let answer = json!({
        "server": SERVER, "account": ACCOUNT, "before": "c9", "after": after, "results": results,
    });
    Answer::Json(200, answer)
}

fn list(title: &str) -> Value {
    json!({
        "title": title, "replies_policy": "none", "exclusive": true, "predicate": null, "notify": false,
    })
}

fn marker(place: u64) -> Value {
    json!({"last_read": place.to_string()})
}

#[tokio::test]
async fn a_chunk_and_its_cursor_are_stored_together_or_not_at_all() {
    let server = Server::start();
    let key = |number: u64| format!("note:https://a.example/{number}");
    let text = json!({"text": "a"});
    let objects: Vec<Value> = (1..=50).map(|n| object(&key(n), n, &text)).collect();
    let device = synced(&server, json!(objects)).await;
    let before = (status(&device).await, device.objects().await);
    let added = [object(&key(60), 81, &text)];
    let gone = (1..=30).map(|n| json!({"key": key(n), "usn": (50 + n).to_string()}));
    let gone: Vec<Value> = gone.collect();
    let chunk = chunk("changes", "c81", false, json!(added), json!(gone));
    // The brake ends the transaction after the objects were written.
    server.then_news(chunk.clone());
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::ManyRemoved { .. }), "{error}");
    assert_eq!((status(&device).await, device.objects().await), before);

    server.then_news(chunk);
    device.sync_with(&server, ONCE, true).await.unwrap();
    let cursors = server.requests().into_iter().map(|pull| pull.cursor());
    assert_eq!(cursors.collect::<Vec<_>>(), ["c9", "c9"]);
    assert_eq!(device.objects().await.len(), 21);
    assert_eq!(status(&device).await.cursor.as_deref(), Some("c81"));
}

#[tokio::test]
async fn a_member_that_comes_before_its_list_is_stored() {
    let server = Server::start();
    let device = Device::made(&server).await;
    let member = [object(MEMBER, 2, &json!({"account": "7"}))];
    server.then_news(chunk("full", "c5", true, json!(member), json!([])));
    server.then(Answer::Lost);
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
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
    server.then(stored(&[(MARKER, 10)], "c10"));
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
    device.sync(&server).await.unwrap_err();
    server.requests();

    server.then_news(json!([]));
    server.then(stored(&[(LIST, 10), (NOTE, 11)], "c11"));
    device.sync(&server).await.unwrap();
    let [_, push] = server.requests().try_into().unwrap();
    let expected = json!([
        {"key": LIST, "base": "9", "value": list("dogs")},
        {"key": NOTE, "base": "0", "value": {"text": "first\nsecond"}},
    ]);
    assert_eq!(push.json()["changes"], expected);
}

#[tokio::test]
async fn an_addition_that_is_removed_after_its_answer_was_lost_stays_removed() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(FAVOURITE, Some(json!({}))).await;
    server.then_news(json!([]));
    server.then(Answer::Lost);
    device.sync(&server).await.unwrap_err();
    let [_, first] = server.requests().try_into().unwrap();
    device.edit(FAVOURITE, None).await;

    let own = object(FAVOURITE, 10, &json!({"post": "7"}));
    let other = object(NOTE, 11, &json!({"text": "a"}));
    let both = [own, other.clone()];
    server.then_news(chunk("changes", "c11", false, json!(both), json!([])));
    server.then(stored(&[(FAVOURITE, 10)], "c10"));
    server.then_news(chunk("changes", "c11", false, json!([other]), json!([])));
    server.then(stored(&[(FAVOURITE, 12)], "c12"));
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
    assert_eq!(objects, [(NOTE.to_owned(), json!({"text": "a"}))]);
}

#[tokio::test]
async fn an_edit_is_clean_only_with_the_usn_that_the_server_returns() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(NOTE, Some(json!({"text": "a"}))).await;
    device.edit(MARKER, Some(marker(5))).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 10)], "c10"));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Malformed { .. }), "{error}");
    let kept = status(&device).await;
    assert_eq!((kept.dirty, kept.cursor.as_deref()), (2, Some("c9")));
    assert!(kept.is_push_pending);

    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 17), (MARKER, 18)], "c18"));
    device.sync(&server).await.unwrap();
    assert_eq!(status(&device).await.dirty, 0);
    let [_, first, _, again] = server.requests().try_into().unwrap();
    assert_eq!(first.body, again.body);
    device.edit(NOTE, None).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 19)], "c19"));
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

#[tokio::test]
async fn an_edit_of_the_present_value_keeps_what_other_devices_have_changed() {
    let server = Server::start();
    let key = "draft:0000000000000000000000000000000a";
    let draft = |text: &str| {
        json!({
            "text": text, "spoiler_text": "", "visibility": null, "sensitive": false, "language": null,
            "in_reply_to": "https://a.example/1",
        })
    };
    let device = synced(&server, json!([object(key, 3, &draft("a"))])).await;
    let replica = device.open().await;
    let edit = async |key: &str| {
        let key = ObjectKey::parse(key).unwrap();
        let change = |mut value: Value| {
            value["text"] = json!("b");
            Some(value)
        };
        replica.edit_with(key, change).await.unwrap()
    };
    let edited = edit(key).await.unwrap();
    assert!(edited.changed && edited.dirty);
    assert_eq!(edit("draft:0000000000000000000000000000000b").await, None);
    replica.close().await;
    let objects = device.objects().await;
    assert_eq!(objects, [(key.to_owned(), draft("b"))]);
}

/// A browser may drop what a device has stored, and keep its token.
#[tokio::test]
async fn a_device_that_lost_its_store_begins_again_as_another_one() {
    let server = Server::start();
    let device = synced(&server, json!([object(MARKER, 9, &marker(5))])).await;
    device.edit(NOTE, Some(json!({"text": "a"}))).await;
    server.then_news(json!([]));
    server.then(stored(&[(NOTE, 10)], "c10"));
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
    server.then(support::notes::stored(NOTE, 11, "c10", "c11"));
    device.sync(&server).await.unwrap();
    let push = server.requests().pop().unwrap().json();
    assert_eq!(push["device"], begun.device);
    assert_eq!(
        (&push["sequence"], &push["previous"]),
        (&json!("1"), &json!(""))
    );
    assert_eq!(push["changes"][0]["base"], "10");
}
