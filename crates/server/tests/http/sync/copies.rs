//! Bookmarks come with their posts, as long as the account may see them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use driftline_core::{
    names::audience::Audience,
    social::Mark,
    sync::{LibraryDigest, ObjectKey, PushChange, Usn, object_digest},
};
use driftline_db::testing::Fresh;
use driftline_server::bookmark_watch::BookmarkWatch;
use driftline_sim::Status;
use driftline_store::{
    LocalId, Tx,
    social::{local_account, marked_post},
    source::{self, LastPosts},
    sync::{self, Resolved},
    timeline::{self, PostKey},
};
use serde_json::{Value, json};

use super::{PULL, PUSH, change, news, pull_of, push_of};
use crate::{
    people::{Person, people_world, people_world_on},
    world::{START_MS, number, show, status, uri},
};

const MINUTE_MS: i64 = 60_000;

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
    assert_eq!(bookmarks.turn(3).await.unwrap(), 0, "some minutes later");
    assert_eq!(bookmarks.turn(5 * MINUTE_MS).await.unwrap(), 2);
    let lost = next(&ann, &mut cursor).await;
    assert_eq!((&lost["key"], &lost["usn"]), (&json!(key), &json!("3")));
    assert_eq!(lost["value"], json!({"added": value["added"]}));

    show(&world, &feed, Audience::Public).await;
    assert_eq!(bookmarks.turn(10 * MINUTE_MS).await.unwrap(), 2);
    let back = next(&ann, &mut cursor).await;
    assert_eq!(back["value"]["status"]["content"], "<p>Better</p>");
    feed.delete(1).await;
    assert_eq!(bookmarks.turn(10 * MINUTE_MS + 1).await.unwrap(), 2);
    let deleted = next(&ann, &mut cursor).await;
    assert_eq!(deleted["usn"], "5");
    assert_eq!(deleted["value"], json!({"added": value["added"]}));
    assert_eq!(bookmarks.turn(10 * MINUTE_MS + 2).await.unwrap(), 0);
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
    assert_eq!(bookmarks.turn(5 * MINUTE_MS).await.unwrap(), 1);
    let lost = next(&ann, &mut cursor).await;
    let members: Vec<&String> = lost["value"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["added"]);
    assert_eq!(bookmarks.turn(5 * MINUTE_MS + 1).await.unwrap(), 0);
    world.close().await;
}

/// The favourite of a post that is pushed has its ID, as a bookmark has.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_push_has_the_ids_of_favourites() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1)]).await;
    let ann = Person::new(&world, "ann").await;
    let shown = ann.page("/api/v1/timelines/public").await.remove(0);
    let key = format!("favourite:{}", uri(&shown));
    let push = push_of(1, "", &[change(&key, 0, &json!({}))]);
    let pushed = ann.post_json(PUSH, &push).await;
    assert_eq!(pushed["results"][0]["value"], json!({"post": shown["id"]}));
    assert_eq!(ann.post_json(PUSH, &push).await, pushed);
    world.close().await;
}

/// There may be many sources, which anyone can add.
#[tokio::test(flavor = "multi_thread")]
async fn the_readable_sources_are_read_once_for_a_chunk_and_not_in_the_write_of_a_push() {
    let (world, _) = people_world_on(Fresh::postgres(), |_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1), status(2)]).await;
    let ann = Person::new(&world, "ann").await;
    let shown = ann.page("/api/v1/timelines/public").await;
    let (account, instance) = (ann.id, feed.source.instance);
    // More than are read at once. No viewer is shown their posts.
    let mark = move |tx: &mut Tx<'_>| {
        (0..120).try_for_each(|number| {
            let post = LocalId::new((1 << 40) + number);
            let key = PostKey { post, instance };
            marked_post::set(tx, account, Mark::Bookmark, key, START_MS)
        })
    };
    let root = local_account::root(account);
    world.store.write(root, mark).await.unwrap();
    let ids: Vec<String> = shown
        .iter()
        .map(|status| number(status).to_string())
        .collect();
    let read = move |tx: &mut Tx<'_>| {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        timeline::keys(tx, instance, &ids)
    };
    let keys = world.store.read(read).await.unwrap();
    let mut resolved = Resolved::default();
    let mut changes = Vec::new();
    for (status, kind) in shown.iter().zip(["bookmark", "favourite"]) {
        let name = uri(status).to_owned();
        changes.push(PushChange {
            key: ObjectKey::parse(format!("{kind}:{name}")).unwrap(),
            base: Usn::NONE,
            value: Some(json!({})),
        });
        let post = keys[&*number(status).to_string()];
        resolved.posts.insert(name, post);
    }

    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    world.store.watch_statements(Box::new(move |sent| {
        if sent.sql.contains("from source s where audience") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let root = resolved.root(account);
    let push = move |tx: &mut Tx<'_>| {
        resolved.lock(tx, account)?;
        sync::push(tx, account, &changes, &resolved, START_MS)
    };
    let pushed = world.store.write(root, push).await.unwrap();
    assert_eq!(pushed.after.usn, 122);
    assert_eq!(reads.swap(0, Ordering::SeqCst), 0);
    let whole = news(&ann, "account", None).await;
    assert_eq!(whole["objects"].as_array().unwrap().len(), 122);
    assert_eq!(whole["objects"][1]["value"]["status"]["id"], shown[0]["id"]);
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    world.close().await;
}
