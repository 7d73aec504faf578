//! Notifications of saved timelines.

use driftline_api::transport::Address;
use driftline_core::names::audience::Audience;
use driftline_server::bells::Bells;
use driftline_store::StoreError;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{path_of, quakes, save};
use crate::{
    people::{Person, people_world},
    world::show,
};

#[tokio::test]
async fn a_list_notifies_of_new_posts_that_its_owner_may_read() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut feed = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    feed.poll_posts(quakes([1])).await;
    let list = save(&ann, "地震").await;
    assert_eq!(list["notify"], false);
    let path = path_of(&list, "/api/v1/lists/ID");
    let ring = async || {
        Bells::new(world.store.clone(), Address::local())
            .ring_all()
            .await
            .unwrap();
    };
    feed.poll_posts(quakes([3])).await;
    ring().await;
    assert!(ann.page(ALL).await.is_empty());
    let changed = ann.ok(Method::PUT, &path, &json!({ "notify": true })).await;
    assert_eq!(changed["notify"], true);
    show(&world, &hidden, Audience::Private).await;
    feed.poll_posts(quakes([5, 6, 7])).await;
    hidden.poll_posts(quakes([9])).await;
    ring().await;
    ring().await;
    let found = ann.page(ALL).await;
    let shown: Vec<&Value> = found.iter().map(|one| &one["status"]["uri"]).collect();
    assert_eq!(shown, ["https://sim.example/7", "https://sim.example/5"]);
    assert!(found.iter().all(|one| one["type"] == "status"));
    assert!(ben.page(ALL).await.is_empty());
    // A post that all may read from now on was there before.
    show(&world, &hidden, Audience::Public).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 2);
    // The list goes on from its last post, and ends.
    feed.poll_posts(quakes([11])).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 3);
    ann.ok(Method::PUT, &path, &json!({ "notify": false }))
        .await;
    feed.poll_posts(quakes([13])).await;
    ring().await;
    assert_eq!(ann.page(ALL).await.len(), 3);
    let plain = json!({ "title": "L", "notify": true });
    let (status, _) = ann.send(Method::POST, "/api/v1/lists", &plain).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

/// A list with another predicate notifies of later posts only, also after a restart of the server.
#[tokio::test]
async fn a_list_with_another_predicate_notifies_of_later_posts() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    // The list begins at a time of the test's clock.
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    let list = ann.post_json("/api/v1/lists", &body).await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    feed.poll_posts(quakes([2])).await;
    bells.ring_all().await.unwrap();
    let path = path_of(&list, "/api/v1/lists/ID");
    let changed = json!({ "predicate": "犬" });
    ann.ok(Method::PUT, &path, &changed).await;
    let mut restarted = Bells::new(world.store.clone(), Address::local());
    for bells in [&mut bells, &mut restarted] {
        bells.ring_all().await.unwrap();
        assert!(ann.page(ALL).await.is_empty());
    }
    feed.poll_posts(quakes([3, 4])).await;
    for bells in [&mut bells, &mut restarted] {
        bells.ring_all().await.unwrap();
        let found = ann.page(ALL).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["status"]["uri"], "https://sim.example/4");
    }
}

/// One of several processes notifies of each post.
#[tokio::test]
async fn two_processes_notify_of_each_post_once() {
    const ALL: &str = "/api/v1/notifications";
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let bells = || Bells::new(world.store.clone(), Address::local());
    let [mut first, mut second] = [bells(), bells()];
    feed.poll_posts(quakes([2])).await;
    first.ring_all().await.unwrap();
    second.ring_all().await.unwrap();
    assert!(ann.page(ALL).await.is_empty());
    feed.poll_posts(quakes([3])).await;
    second.ring_all().await.unwrap();
    first.ring_all().await.unwrap();
    assert_eq!(ann.page(ALL).await.len(), 1);
    feed.poll_posts(quakes([4, 5, 7])).await;
    first.ring_all().await.unwrap();
    second.ring_all().await.unwrap();
    assert_eq!(ann.page(ALL).await.len(), 3);
}

/// A list without matches is not written at each turn. The process knows how far it was compared, also after turns
/// without new posts.
#[tokio::test]
async fn a_list_without_matches_is_written_rarely() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let mut hidden = world.feed("hidden").await;
    show(&world, &hidden, Audience::Private).await;
    // The list begins at a time of the test's clock.
    feed.poll_posts(quakes([1])).await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let notified = async || {
        let read = world.store.read(|tx| {
            let query = "select notified_id from list";
            Ok::<_, StoreError>(tx.query_one(query, &[], |row| row.i64("notified_id"))?)
        });
        read.await.unwrap()
    };
    let before = notified().await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    feed.poll_posts(quakes([2])).await;
    hidden.poll_posts(quakes([9])).await;
    for _ in 0..3 {
        bells.ring_all().await.unwrap();
    }
    assert_eq!(notified().await, before);
    show(&world, &hidden, Audience::Public).await;
    bells.ring_all().await.unwrap();
    assert!(ann.page("/api/v1/notifications").await.is_empty());
    feed.poll_posts(quakes([11])).await;
    bells.ring_all().await.unwrap();
    assert_eq!(ann.page("/api/v1/notifications").await.len(), 1);
    assert!(notified().await > before);
}

/// A list notifies of all its posts, also of more than one page of them at once.
#[tokio::test]
async fn a_list_notifies_of_many_posts_at_once() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let body = json!({ "title": "Quakes", "predicate": "地震", "notify": true });
    ann.post_json("/api/v1/lists", &body).await;
    let mut bells = Bells::new(world.store.clone(), Address::local());
    for first in [1, 61, 121] {
        feed.poll_posts(quakes(first..first + 60)).await;
    }
    bells.ring_all().await.unwrap();
    let found = ann.page("/api/v1/notifications?limit=80").await;
    assert_eq!(found.len(), 80);
    let last = found[79]["id"].as_str().unwrap();
    let older = format!("/api/v1/notifications?limit=80&max_id={last}");
    assert_eq!(ann.page(&older).await.len(), 10);
}

/// Lists that have to be searched whatever is new are few.
#[tokio::test]
async fn few_lists_without_a_word_notify() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let new = |predicate: &str| json!({ "title": "L", "predicate": predicate, "notify": true });
    for predicate in ["has:media", "-cat", "cat OR lang:ja", "{}", "is:reply"] {
        ann.post_json("/api/v1/lists", &new(predicate)).await;
    }
    let (status, answer) = ann
        .send(Method::POST, "/api/v1/lists", &new("-has:media"))
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("at most 5 lists"),
        "{answer}"
    );
    for predicate in [
        "cat",
        "cat lang:ja",
        "from:ann@b.example",
        "#cat -has:media",
    ] {
        ann.post_json("/api/v1/lists", &new(predicate)).await;
    }
}
