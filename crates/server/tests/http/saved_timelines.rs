//! Lists whose posts a predicate selects.

mod edits;
mod feeds;
mod notifications;
mod streams;

use driftline_api::transport::Address;
use driftline_core::names::audience::Audience;
use driftline_server::bells::Bells;
use driftline_store::{Root, StoreError};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    search::{read, written},
    world::{numbers, show},
};

async fn save(person: &Person, predicate: &str) -> Value {
    let body = json!({ "title": "Quakes", "predicate": predicate });
    person.post_json("/api/v1/lists", &body).await
}

fn path_of(list: &Value, route: &str) -> String {
    route.replace("ID", list["id"].as_str().unwrap())
}

fn quakes(numbers: impl IntoIterator<Item = u64>) -> Vec<driftline_core::post::Post> {
    let posts = numbers.into_iter().map(|n| match n % 2 {
        0 => written(n, "<p>犬です</p>"),
        _ => written(n, "<p>地震です</p>"),
    });
    posts.map(|status| read(&status)).collect()
}

#[tokio::test]
async fn a_saved_predicate_is_a_list_with_its_posts() {
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes(1..=6)).await;
    let list = save(&ann, "地震 -from:me").await;
    assert_eq!(list["title"], "Quakes");
    let host = world.base.strip_prefix("http://").unwrap();
    assert_eq!(list["predicate"], format!("地震 -author:ann@{host}"));
    assert_eq!(ann.get("/api/v1/lists").await, json!([list]));
    let timeline = path_of(&list, "/api/v1/timelines/list/ID");
    assert_eq!(numbers(&ann.page(&timeline).await), [5, 3, 1]);
    let first = ann.page(&format!("{timeline}?limit=1")).await;
    let older = format!(
        "{timeline}?limit=1&max_id={}",
        first[0]["id"].as_str().unwrap()
    );
    assert_eq!(numbers(&ann.page(&older).await), [3]);
    feed.poll_posts(quakes([7, 8])).await;
    let newer = format!("{timeline}?min_id={}", first[0]["id"].as_str().unwrap());
    assert_eq!(numbers(&ann.page(&newer).await), [7]);
    assert_eq!(
        numbers(&ann.page(&format!("{timeline}?only_media=true")).await),
        [0; 0]
    );

    // Another account has no such list.
    let (status, _) = ben.send(Method::GET, &timeline, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    // It has no accounts, and none are added.
    let accounts = path_of(&list, "/api/v1/lists/ID/accounts");
    assert_eq!(ann.get(&accounts).await, json!([]));
    let author = ann.follow("ann@sim.example").await;
    let body = json!({ "account_ids": [author] });
    let (status, answer) = ann.send(Method::POST, &accounts, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");

    // A new title and a new predicate keep its ID.
    let path = path_of(&list, "/api/v1/lists/ID");
    let renamed = ann.ok(Method::PUT, &path, &json!({ "title": "犬" })).await;
    assert_eq!(
        (&renamed["id"], &renamed["title"]),
        (&list["id"], &json!("犬"))
    );
    assert_eq!(renamed["predicate"], list["predicate"]);
    let changed = ann
        .ok(Method::PUT, &path, &json!({ "predicate": "犬" }))
        .await;
    assert_eq!(changed["predicate"], "犬");
    assert_eq!(numbers(&ann.page(&timeline).await), [8, 6, 4, 2]);
    ann.ok(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(ann.get("/api/v1/lists").await, json!([]));
}

#[tokio::test]
async fn a_predicate_that_cannot_be_kept_is_refused_with_its_reason() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let plain = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    assert_eq!(plain.get("predicate"), None);
    let plain = path_of(&plain, "/api/v1/lists/ID");
    for (method, path, predicate, reason) in [
        (Method::POST, "/api/v1/lists", "cat (dog", "column 5"),
        (
            Method::POST,
            "/api/v1/lists",
            "favourites:>3",
            "saved timeline",
        ),
        (
            Method::POST,
            "/api/v1/lists",
            "is:followed",
            "saved timeline",
        ),
        (Method::PUT, &plain, "cat", "accounts"),
    ] {
        let body = json!({ "title": "L", "predicate": predicate });
        let (status, answer) = ann.send(method, path, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(reason), "{predicate}: {error}");
    }
}

#[tokio::test]
async fn a_predicate_of_a_newer_version_pauses_its_list_alone() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let [list, other] = [save(&ann, "地震").await, save(&ann, "犬").await];
    let [path, timeline, accounts, feed_path] = [
        "/api/v1/lists/ID",
        "/api/v1/timelines/list/ID",
        "/api/v1/lists/ID/accounts",
        "/api/driftline/v1/lists/ID/feed",
    ]
    .map(|route| path_of(&list, route));
    ann.ok(Method::PUT, &path, &json!({ "notify": true })).await;
    let addresses = ann.post(&feed_path).await;
    let address = addresses["json"].as_str().unwrap();
    let address = address.strip_prefix(&world.base).unwrap();
    let written = world.store.write(Root::none(), |tx| {
        let json = r#"{"folding":9,"tree":{"near":[]}}"#;
        tx.execute(
            "update list set predicate = $1 where predicate like '%地震%'",
            &[&json],
        )?;
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();

    let lists = ann.get("/api/v1/lists").await;
    assert_eq!(lists[1], other);
    assert_eq!(lists[0].get("predicate"), None);
    let reason = lists[0]["predicate_error"].as_str().unwrap();
    assert!(reason.contains("near") || reason.contains('9'), "{reason}");
    let (status, answer) = ann.send(Method::GET, &timeline, &Value::Null).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer["error"].as_str().unwrap().contains(reason),
        "{answer}"
    );
    // Notifications and the feed pause.
    feed.poll_posts(quakes([1])).await;
    Bells::new(world.store.clone(), Address::local())
        .ring_all()
        .await
        .unwrap();
    assert!(ann.page("/api/v1/notifications").await.is_empty());
    assert_eq!(world.answer(address).await.status(), StatusCode::NOT_FOUND);
    // Another title keeps the predicate, and accounts are refused as before.
    let renamed = json!({ "title": "Later" });
    let renamed = ann.ok(Method::PUT, &path, &renamed).await;
    assert_eq!(renamed["predicate_error"], reason);
    assert_eq!(renamed["notify"], true);
    assert_eq!(ann.get("/api/v1/lists").await[0], renamed);
    let author = ann.follow("ann@sim.example").await;
    let body = json!({ "account_ids": [author] });
    let (status, _) = ann.send(Method::POST, &accounts, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // Another predicate takes its place.
    let replaced = json!({ "predicate": "地震" });
    let replaced = ann.ok(Method::PUT, &path, &replaced).await;
    assert_eq!(replaced["predicate"], "地震");
    assert_eq!(replaced.get("predicate_error"), None);
    assert_eq!(numbers(&ann.page(&timeline).await), [1]);
}

/// Each list has the posts that its owner may read, at the owner's places.
#[tokio::test]
async fn a_saved_timeline_shows_what_its_owner_may_read() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.new_feed("hidden").await;
    feed.poll_posts(quakes([1, 3])).await;
    show(&world, &feed, Audience::Private).await;
    let list = save(&ann, "地震").await;
    let timeline = path_of(&list, "/api/v1/timelines/list/ID");
    assert_eq!(numbers(&ann.page(&timeline).await), [0; 0]);
    show(&world, &feed, Audience::Members).await;
    assert_eq!(numbers(&ann.page(&timeline).await), [3, 1]);
}
