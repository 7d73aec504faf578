//! Edits that a device may make, and objects that it changes with them.

use driftline_core::sync::ObjectKey;
use driftline_replica::ReplicaError;
use serde_json::{Value, json};

use crate::support::{
    Server,
    notes::{POST, chunk, note, synced},
    object, stored,
};

#[tokio::test]
async fn devices_change_what_the_protocol_lets_them() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let replica = device.open().await;
    let edit = async |key: &str, value: Option<Value>| {
        let key = ObjectKey::parse(key).unwrap();
        replica.edit(key, value).await
    };
    for (key, value) in [
        ("later:1", Some(json!({}))),
        ("marker:home", None),
        ("profile:self", None),
    ] {
        let refused = edit(key, value).await;
        assert!(matches!(refused, Err(ReplicaError::ReadOnly(_))), "{key}");
    }
    let filter = format!("filter:{:032x}", 1);
    for (key, value) in [(POST, note("")), (filter.as_str(), json!({"title": "x"}))] {
        let refused = edit(key, Some(value)).await;
        assert!(matches!(refused, Err(ReplicaError::Value(_))), "{key}");
    }
    for (value, changed, dirty) in [
        (Some(note("a")), true, true),
        (Some(note("a")), false, true),
        (None, true, false),
        (None, false, false),
    ] {
        let edited = edit(POST, value).await.unwrap();
        assert_eq!((edited.changed, edited.dirty), (changed, dirty));
    }
    replica.close().await;
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

#[tokio::test]
async fn a_list_takes_its_accounts_along_without_a_question() {
    let server = Server::start();
    let list = format!("list:{:032x}", 1);
    let member = |number: u64| format!("list-member:{:032x}:ann{number}@a.example", 1);
    let mut keys: Vec<String> = (1..=30).map(member).collect();
    keys.sort();
    let other = format!("list-member:{:032x}:ann@a.example", 2);
    let here = keys.iter().chain([&list, &other]).zip(1_u64..);
    let objects = here.map(|(key, usn)| object(key, usn, &json!({})));
    let device = synced(&server, json!(objects.collect::<Vec<_>>())).await;
    assert!(device.edit(&list, None).await);
    let left = device.objects().await.into_iter().map(|(key, _)| key);
    assert_eq!(left.collect::<Vec<_>>(), [other]);

    keys.push(list);
    let usns = || keys.iter().zip(40_u64..);
    let changes: Vec<(&str, u64)> = usns().map(|(key, usn)| (key.as_str(), usn)).collect();
    server.then_news(json!([]));
    server.then(stored(&changes, "c9", "c70"));
    let gone = usns().map(|(key, usn)| json!({"key": key, "usn": usn.to_string()}));
    let gone = json!(gone.collect::<Vec<_>>());
    server.then_news(chunk("changes", "c70", false, json!([]), gone));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.work.removed), (31, 0));
    assert_eq!((report.dirty, report.open_conflicts), (0, 0));
}
