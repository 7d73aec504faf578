//! Single posts, what they refer to, and their versions.

use driftline_core::post::Visibility;
use driftline_db::testing::{Fresh, databases};
use driftline_sim::Status;
use driftline_store::{
    Tx,
    timeline::{self, Range, Viewer},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{Feed, START_MS, TOKEN, World, id, parsed, post_of, status, uri};

fn path(id: u64) -> String {
    format!("/api/v1/statuses/{id}")
}

#[tokio::test]
async fn either_id_finds_the_post() {
    for fresh in databases() {
        let world = World::on(fresh, |_| {}).await;
        let mut feeds = [world.feed("one").await, world.feed("two").await];
        for feed in &mut feeds {
            feed.poll(&[status(1), status(2)]).await;
        }
        let public = world.page("/api/v1/timelines/public").await;
        let one = world.page(&feeds[0].path()).await;
        let two = world.page(&feeds[1].path()).await;
        assert_eq!(public, one);
        for (post, entry) in public.iter().zip(&two) {
            assert_eq!(uri(post), uri(entry));
            assert!(id(entry) > id(post));
            assert_eq!(&world.json(&path(id(post))).await, post);
            assert_eq!(&world.json(&path(id(entry))).await, entry);
        }
        world.close().await;
    }
}

#[tokio::test]
async fn posts_that_are_not_public_are_nowhere() {
    let world = World::of_strangers(Fresh::sqlite()).await;
    let mut feed = world.feed("home").await;
    let of = |n, visibility| Status {
        visibility,
        ..status(n)
    };
    feed.poll(&[status(1)]).await;
    feed.poll(&[
        of(2, Visibility::Unlisted),
        of(3, Visibility::Private),
        of(4, Visibility::Direct),
        status(5),
    ])
    .await;
    let public = "/api/v1/timelines/public";
    assert_eq!(world.page(public).await.len(), 2);
    // Whose source it is sees all.
    let listed = async |feed: &Feed| {
        let url = format!("{}{}", world.base, feed.path());
        let answer = world.client.get(url).bearer_auth(TOKEN).send().await;
        parsed(answer.unwrap()).await.as_array().unwrap().len()
    };
    assert_eq!(listed(&feed).await, 5);
    let source = feed.source;
    let all = Range {
        limit: 40,
        ..Range::default()
    };
    let read = move |tx: &mut Tx<'_>| timeline::source(tx, source, &all, Viewer::Operator);
    let all = world.store.read(read).await.unwrap();
    assert_eq!(all.len(), 5);
    for post in all {
        let is_shown = post.visibility == Visibility::Public;
        let answer = world.answer(&path(post.id.raw())).await;
        assert_eq!(answer.status() == StatusCode::OK, is_shown);
        assert_eq!(answer.status() == StatusCode::NOT_FOUND, !is_shown);
    }
    feed.poll(&[of(5, Visibility::Private)]).await;
    assert_eq!(world.page(public).await.len(), 1);
    assert_eq!(listed(&feed).await, 5);
}

#[tokio::test]
async fn deleted_posts_are_hidden() {
    let world = World::new().await;
    let mut feeds = [world.feed("one").await, world.feed("two").await];
    for feed in &mut feeds {
        feed.poll(&[status(1), status(2), status(3)]).await;
    }
    let before = world.page(&feeds[1].path()).await;
    feeds[0].delete(2).await;
    let paths = [
        "/api/v1/timelines/public".to_owned(),
        feeds[0].path(),
        feeds[1].path(),
    ];
    for list in &paths {
        let page = world.page(list).await;
        assert_eq!(page.len(), 2);
        assert!(page.iter().all(|status| !uri(status).ends_with("/2")));
    }
    for rest in ["", "/history"] {
        let deleted = format!("{}{rest}", path(id(&before[1])));
        let answer = world.answer(&deleted).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
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
    let world = World::of_strangers(Fresh::sqlite()).await;
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

#[tokio::test]
async fn versions_from_before_a_return_stay_hidden() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    feed.poll(&[version(0, Visibility::Private)]).await;
    feed.poll(&[version(1, Visibility::Public)]).await;
    feed.delete(1).await;
    feed.poll(&[version(1, Visibility::Public)]).await;
    let page = world.page(&feed.path()).await;
    let versions = world.page(&format!("{}/history", path(id(&page[0])))).await;
    assert_eq!(versions.len(), 1, "{versions:?}");
    assert_eq!(versions[0]["content"], "<p>Version 1</p>");
}
