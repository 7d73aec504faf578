//! Servers and versions of this program that are newer than a replica: it keeps what it does not know.

use driftline_core::sync::{LibraryDigest, ObjectKey, Usn, object_digest};
use driftline_db::{Db, Options, Root, Target};
use driftline_mastodon::TEXT_EXTRACTION;
use driftline_replica::{ReplicaError, SyncContext};
use serde_json::{Value, json};

use crate::support::{
    ACCOUNT, Answer, Device, SERVER, Server,
    notes::{POST, chunk, note, status, synced},
    random,
    sources::{self, HOME, posts},
    stored,
};

/// An object of a kind that this version does not know.
const LATER: &str = "later:0000000000000000000000000000000a";
const DRAFT: &str = "draft:0000000000000000000000000000000a";

/// The value of an object of an unknown kind.
fn later() -> Value {
    json!({"shape": {"sides": 3}, "names": ["b", "a"], "at": 9_007_199_254_740_993_u64})
}

/// A note that a later version has given a color.
fn colored(text: &str) -> Value {
    json!({"text": text, "color": "red"})
}

/// A device that a newer server has sent a kind, and members of each part of an answer, that it does not know.
async fn behind(server: &Server) -> Device {
    let device = Device::made(server).await;
    let objects = json!([
        {"key": LATER, "usn": "9", "value": later(), "weight": 2},
        {"key": POST, "usn": "8", "value": colored("a")},
    ]);
    let news = json!([{
        "library": "account", "state": "full", "cursor": "c9", "more": false, "objects": objects,
        "gone": [], "hint": [1],
    }]);
    let answer = json!({"server": SERVER, "account": ACCOUNT, "news": news, "notice": "hello"});
    server.then(Answer::Json(200, answer));
    server.then_news(json!([]));
    device.sync(server).await.unwrap();
    assert_eq!(server.answers_left(), 0);
    server.requests();
    device
}

#[tokio::test]
async fn kinds_and_members_of_a_later_version_are_kept_as_they_came() {
    let server = Server::start();
    let device = behind(&server).await;
    let kept = [(LATER.to_owned(), later()), (POST.to_owned(), colored("a"))];
    assert_eq!(device.objects().await, kept);

    let replica = device.open().await;
    for value in [Some(json!({})), None] {
        let key = ObjectKey::parse(LATER).unwrap();
        let refused = replica.edit(key, value).await;
        assert!(matches!(refused, Err(ReplicaError::ReadOnly(_))));
    }
    // They count in the comparison with the server.
    let mut digest = LibraryDigest::default();
    for (key, usn, value) in [(LATER, 9, later()), (POST, 8, colored("a"))] {
        let key = ObjectKey::parse(key).unwrap();
        digest.add(object_digest(&key, Usn::new(usn), &value));
    }
    let there = json!({
        "server": SERVER, "account": ACCOUNT, "cursor": "c9", "count": 2, "digest": digest.text(),
    });
    server.then(Answer::Json(200, there));
    let mut random = random;
    let mut context = SyncContext::new(0, &mut random);
    let client = device.client(&server);
    let verified = replica.verify(&client, &mut context).await.unwrap();
    assert!(verified.is_equal, "{verified:?}");
    replica.close().await;
}

#[tokio::test]
async fn an_edit_keeps_the_members_that_it_does_not_know() {
    let server = Server::start();
    let device = behind(&server).await;
    assert!(!device.edit(POST, Some(note("a"))).await);
    assert!(device.edit(POST, Some(note("b"))).await);
    // Back, and again.
    assert!(device.edit(POST, Some(note("a"))).await);
    assert!(device.edit(POST, Some(note("b"))).await);
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    device.sync(&server).await.unwrap();
    let push = server.requests().pop().unwrap().json();
    let expected = json!([{"key": POST, "base": "8", "value": colored("b")}]);
    assert_eq!(push["changes"], expected);
    // A note that is written again is another one.
    assert!(device.edit(POST, None).await);
    assert!(device.edit(POST, Some(note("c"))).await);
    let objects = device.objects().await;
    assert_eq!(objects[1], (POST.to_owned(), note("c")));
}

#[tokio::test]
async fn an_edit_of_a_value_that_cannot_be_read_keeps_the_members_that_it_does_not_know() {
    let server = Server::start();
    let value = json!({"text": "a", "visibility": "friends", "color": "red"});
    let object = json!({"key": DRAFT, "usn": "3", "value": value});
    let device = synced(&server, json!([object])).await;
    assert!(device.edit(DRAFT, Some(json!({"text": "b"}))).await);
    let [(_, edited)] = device.objects().await.try_into().unwrap();
    assert_eq!(
        (&edited["text"], &edited["color"]),
        (&json!("b"), &json!("red"))
    );
    assert_eq!(edited["visibility"], Value::Null);
}

/// Changes one row of the database.
async fn change(device: &Device, sql: String) {
    let path = device.folder().join("replica.db");
    // Without a schema, which is neither changed nor checked.
    let options = Options::new(Target::Sqlite { path }, &[]);
    let opened = tokio::task::spawn_blocking(move || Db::open(options)).await;
    let db = opened.unwrap().unwrap();
    let changed = db.write(Root::none(), move |tx| tx.execute(&sql, &[]));
    assert_eq!(changed.await.unwrap(), 1);
    db.close().await;
}

#[tokio::test]
async fn posts_are_indexed_again_after_a_change_of_the_terms() {
    let server = Server::start();
    let device = sources::synced(&server, &[(HOME, "home", posts([1, 2]))]).await;
    assert_eq!(status(&device).await.unindexed, 0);
    let version = |version: i64| format!(r#""text_extraction":{version}"#);
    let (now, before) = (version(TEXT_EXTRACTION), version(TEXT_EXTRACTION - 1));
    let sql = format!("update replica set state = replace(state, '{now}', '{before}')");
    change(&device, sql).await;
    assert_eq!(status(&device).await.unindexed, 2);
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.indexed, 2);
    assert_eq!(status(&device).await.unindexed, 0);
}

#[tokio::test]
async fn a_newer_version_edits_what_an_older_one_kept() {
    let server = Server::start();
    let draft = |text: &str| {
        json!({
            "text": text, "spoiler_text": "", "visibility": null, "sensitive": false, "language": null,
            "in_reply_to": null,
        })
    };
    let object =
        |key: &str, usn: u64| json!({"key": key, "usn": usn.to_string(), "value": draft("a")});
    let device = synced(&server, json!([object(LATER, 3)])).await;
    // The row of a kind that a program does not know is that of one that it knows.
    let sql = format!("update object set key = '{DRAFT}' where key = '{LATER}'");
    change(&device, sql).await;
    assert_eq!(device.objects().await, [(DRAFT.to_owned(), draft("a"))]);
    assert!(!device.edit(DRAFT, Some(json!({"text": "a"}))).await);
    assert!(device.edit(DRAFT, Some(json!({"text": "b"}))).await);
    server.then_news(json!([]));
    server.then(stored(&[(DRAFT, 10)], "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    let push = server.requests().pop().unwrap().json();
    let expected = json!([{"key": DRAFT, "base": "3", "value": draft("b")}]);
    assert_eq!(push["changes"], expected);
    // Another device deletes it.
    let gone = json!([{"key": DRAFT, "usn": "11"}]);
    server.then_news(chunk("changes", "c11", false, json!([]), gone));
    device.sync(&server).await.unwrap();
    assert!(device.objects().await.is_empty());
}
