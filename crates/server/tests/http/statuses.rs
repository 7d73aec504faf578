//! Single posts, what they refer to, and their versions.

use driftline_core::post::Visibility;
use driftline_sim::Status;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{START_MS, World, id, post_of, status};

fn path(id: u64) -> String {
    format!("/api/v1/statuses/{id}")
}

#[tokio::test]
async fn boosts_hold_the_boosted_post() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    let boost = |n: u64, of: Status| Status {
        content: String::new(),
        boost_of: Some(Box::new(of)),
        ..status(n)
    };
    feed.poll(&[status(1)]).await;
    let private = Status {
        visibility: Visibility::Private,
        ..status(3)
    };
    let unknown = status(2);
    feed.poll(&[boost(10, status(1)), boost(11, unknown), boost(12, private)])
        .await;
    let page = world.page("/api/v1/timelines/public").await;
    let [private, unknown, known, original] = page.as_slice() else {
        panic!("{page:?}")
    };
    assert_eq!(private["reblog"], Value::Null);
    // It has a local ID, under which nothing is found.
    let unknown_id = id(&unknown["reblog"]);
    assert!(unknown_id > id(original) && unknown_id < id(unknown));
    let answer = world.answer(&path(unknown_id)).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(unknown["reblog"]["content"], "<p>Post 2</p>");
    assert_eq!(unknown["reblog"]["account"]["acct"], "drifter2@sim.example");
    assert_eq!(&known["reblog"], original);
    // The same where the boosted post is not on the page.
    let first = world.page("/api/v1/timelines/public?limit=1&max_id=").await;
    assert_eq!(first.len(), 1);
    let alone = world.json(&path(id(known))).await;
    assert_eq!(&alone, known);
}

#[tokio::test]
async fn replies_and_mentions_name_local_ids() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    feed.poll(&[status(1), status(2)]).await;
    let page = world.page("/api/v1/timelines/public").await;
    let (author, replied) = (&page[1]["account"]["id"], &page[1]["id"]);
    let reply = |n: u64, to: &str, account: &str| {
        let mut json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
        json["in_reply_to_id"] = json!(to);
        json["in_reply_to_account_id"] = json!(account);
        json["mentions"] = json!([{
            "id": account, "username": "drifter2", "acct": "drifter2", "url": "https://s.example/2",
            "other": true,
        }]);
        post_of(n, &json)
    };
    feed.poll_posts(vec![
        reply(3, "1", "901"),
        reply(4, "77", "904"),
        reply(5, "77", "777"),
    ])
    .await;
    let page = world.page("/api/v1/timelines/public?limit=3").await;
    let [nobody, own, known] = page.as_slice() else {
        panic!("{page:?}")
    };
    assert_eq!(&known["in_reply_to_id"], replied);
    assert_eq!(&known["in_reply_to_account_id"], author);
    // A post that is not stored has one local ID, and an account too.
    assert_eq!(own["in_reply_to_account_id"], own["account"]["id"]);
    assert_eq!(own["in_reply_to_id"], nobody["in_reply_to_id"]);
    let unknown: u64 = own["in_reply_to_id"].as_str().unwrap().parse().unwrap();
    assert!(unknown > id(own) - 1_000_000_000 && unknown != 77);
    let answer = world.answer(&path(unknown)).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let account = &nobody["in_reply_to_account_id"];
    assert_ne!(account, "777");
    assert_eq!(
        nobody["mentions"],
        json!([{
            "id": account, "username": "drifter2", "acct": "drifter2@sim.example",
            "url": "https://s.example/2", "other": true,
        }])
    );
    assert_eq!(own["mentions"][0]["id"], own["account"]["id"]);
}

fn version(n: i64, visibility: Visibility) -> Status {
    Status {
        content: format!("<p>Version {n}</p>"),
        edited_at_ms: (n > 0).then_some(START_MS + n * 60_000),
        visibility,
        ..status(1)
    }
}

#[tokio::test]
async fn versions_are_shown_from_the_first() {
    let world = World::of_strangers().await;
    let mut feed = world.feed("home").await;
    feed.poll(&[version(0, Visibility::Public)]).await;
    let page = world.page("/api/v1/timelines/public").await;
    let history = format!("{}/history", path(id(&page[0])));
    assert_eq!(world.page(&history).await.len(), 1);
    feed.poll(&[version(1, Visibility::Private)]).await;
    assert_eq!(world.answer(&history).await.status(), StatusCode::NOT_FOUND);
    let mut feed = world.feed("other").await;
    let other = |n| Status {
        id: "2".into(),
        ..version(n, Visibility::Public)
    };
    for n in 0..3 {
        feed.poll(&[other(n)]).await;
    }
    let page = world.page("/api/v1/timelines/public").await;
    assert_eq!(page[0]["edited_at"], "2027-01-15T08:02:00.000Z");
    let versions = world.page(&format!("{}/history", path(id(&page[0])))).await;
    let shown: Vec<(&str, &str)> = versions
        .iter()
        .map(|edit| {
            let text = |key: &str| edit[key].as_str().unwrap();
            (text("content"), text("created_at"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("<p>Version 0</p>", "2027-01-15T07:59:00.000Z"),
            ("<p>Version 1</p>", "2027-01-15T08:01:00.000Z"),
            ("<p>Version 2</p>", "2027-01-15T08:02:00.000Z"),
        ]
    );
    for edit in &versions {
        assert_eq!(edit["account"]["acct"], "drifter1@far.example");
        assert!(edit["sensitive"].is_boolean() && edit["emojis"].is_array());
    }
}
