//! Bookmarks come with their posts, as long as the account may see them.

use driftline_core::{
    names::audience::Audience,
    sync::{LibraryDigest, ObjectKey, Usn, object_digest},
};
use driftline_server::bookmark_watch::BookmarkWatch;
use driftline_sim::Status;
use driftline_store::{
    Tx,
    source::{self, LastPosts},
};
use serde_json::{Value, json};

use super::{PULL, PUSH, change, news, pull_of, push_of};
use crate::{
    people::{Person, people_world},
    world::{START_MS, show, status, uri},
};

/// The only object that came since a cursor, which moves.
async fn next(person: &Person, cursor: &mut Value) -> Value {
    let news = news(person, "account", Some(&*cursor)).await;
    assert_eq!(news["state"], "changes");
    assert_eq!(news["objects"].as_array().unwrap().len(), 1);
    *cursor = news["cursor"].clone();
    news["objects"][0].clone()
}

async fn assert_no_news(person: &Person, cursor: &Value) {
    let answer = person
        .post_json(PULL, &pull_of("account", Some(cursor)))
        .await;
    assert_eq!(answer["news"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_has_its_post_until_the_account_may_not_see_it() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1)]).await;
    let [ann, ben] = [
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    ];
    let mut bookmarks = BookmarkWatch::new(world.store.clone());
    assert_eq!(bookmarks.turn(0).await.unwrap(), 0);
    let shown = ann.page("/api/v1/timelines/public").await.remove(0);
    let key = format!("bookmark:{}", uri(&shown));

    // The answer to a push has the copy, also when it is repeated.
    let push = push_of(1, "", &[change(&key, 0, &json!({}))]);
    let pushed = ann.post_json(PUSH, &push).await;
    let value = pushed["results"][0]["value"].clone();
    assert_eq!(value["post"], shown["id"]);
    let copy = &value["status"];
    assert_eq!(copy["content"], "<p>Post 1</p>");
    assert_eq!(copy["account"]["acct"], shown["account"]["acct"]);
    assert_eq!((copy.get("bookmarked"), copy.get("filtered")), (None, None));
    assert_eq!(ann.post_json(PUSH, &push).await, pushed);
    let whole = news(&ann, "account", None).await;
    assert_eq!(whole["objects"][0]["value"], value);
    let mut cursor = pushed["after"].clone();

    // Counts and what another account keeps are no news.
    feed.poll(&[Status {
        favourites: 99,
        ..status(1)
    }])
    .await;
    ben.post_json(PUSH, &push).await;
    assert_eq!(bookmarks.turn(1).await.unwrap(), 0);
    assert_no_news(&ann, &cursor).await;

    let better = Status {
        edited_at_ms: Some(START_MS),
        content: "<p>Better</p>".to_owned(),
        ..status(1)
    };
    feed.poll(&[better]).await;
    assert_eq!(bookmarks.turn(2).await.unwrap(), 2);
    let edited = next(&ann, &mut cursor).await;
    assert_eq!((&edited["key"], &edited["usn"]), (&json!(key), &json!("2")));
    assert_eq!(edited["value"]["added"], value["added"]);
    assert_eq!(edited["value"]["status"]["content"], "<p>Better</p>");
    let library = json!({"library": "account"});
    let digest = ann
        .post_json("/api/driftline/v1/sync/digest", &library)
        .await;
    let mut bare = LibraryDigest::default();
    bare.add(object_digest(
        &ObjectKey::parse(&*key).unwrap(),
        Usn::new(2),
        &json!({}),
    ));
    assert_eq!(digest["digest"], bare.text(), "the copy is not in it");

    // Each read shows what the account may see at that moment; the news follow.
    show(&world, &feed, Audience::Private).await;
    let whole = news(&ann, "account", None).await;
    assert_eq!(
        whole["objects"][0]["value"],
        json!({"added": value["added"]})
    );
    let again = ann.post_json(PUSH, &push).await;
    assert_eq!(again["results"][0]["value"].get("status"), None);
    assert_eq!(bookmarks.turn(3).await.unwrap(), 2);
    let lost = next(&ann, &mut cursor).await;
    assert_eq!((&lost["key"], &lost["usn"]), (&json!(key), &json!("3")));
    assert_eq!(lost["value"], json!({"added": value["added"]}));

    show(&world, &feed, Audience::Public).await;
    assert_eq!(bookmarks.turn(4).await.unwrap(), 2);
    let back = next(&ann, &mut cursor).await;
    assert_eq!(back["value"]["status"]["content"], "<p>Better</p>");
    feed.delete(1).await;
    assert_eq!(bookmarks.turn(5).await.unwrap(), 2);
    let deleted = next(&ann, &mut cursor).await;
    assert_eq!(deleted["usn"], "5");
    assert_eq!(deleted["value"], json!({"added": value["added"]}));
    assert_eq!(bookmarks.turn(6).await.unwrap(), 0);
    assert_no_news(&ann, &cursor).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bookmark_of_a_source_that_is_removed_keeps_no_copy() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1)]).await;
    let shown = ann.page("/api/v1/timelines/public").await.remove(0);
    let mut bookmarks = BookmarkWatch::new(world.store.clone());
    bookmarks.turn(0).await.unwrap();
    let id = shown["id"].as_str().unwrap();
    ann.post(&format!("/api/v1/statuses/{id}/bookmark")).await;
    let mut cursor = news(&ann, "account", None).await["cursor"].clone();
    let key = feed.source;
    let remove = move |tx: &mut Tx<'_>| source::remove(tx, key, LastPosts::Remove);
    world.store.write(source::root(key), remove).await.unwrap();
    assert_eq!(bookmarks.turn(1).await.unwrap(), 1);
    let lost = next(&ann, &mut cursor).await;
    let members: Vec<&String> = lost["value"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["added"]);
    assert_eq!(bookmarks.turn(2).await.unwrap(), 0);
    world.close().await;
}
