//! The search index and the authors of a replica, with a server that answers from a script.

use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::{Direction, InitOutcome, ReplicaError, SyncContext};
use serde_json::json;

use crate::support::{
    Answer, Device, NOW_MS, Server,
    notes::status,
    random,
    sources::{
        HOME, NEWS, all, gone, matching, names, own, part, post, posts, subscribe, synced,
        then_libraries, timeline, uri,
    },
};

/// The names of the posts that a query finds.
async fn found(device: &Device, query: &str) -> Vec<String> {
    names(device, matching(query)).await
}

#[tokio::test]
async fn authors_are_shown_and_found_by_their_newest_profiles() {
    let server = Server::start();
    let other = vec![post("q1", 1)];
    // Older posts, which come later, have an older profile.
    let mut home = posts([9, 8]);
    home[1]["value"]["status"]["account"]["display_name"] = json!("Jiro");
    let sources = [(HOME, "home", home), (NEWS, "news", other)];
    let device = synced(&server, &sources).await;
    assert_eq!(found(&device, "hanako").await, ["p9", "p8", "q1"]);
    assert!(found(&device, "jiro").await.is_empty());
    let mut boost = post("p10", 10);
    let mut boosted = post("p11", 11)["value"]["status"].clone();
    boosted["account"]["display_name"] = json!("Jiro");
    boost["value"]["status"]["account"]["acct"] = json!("eve@a.example");
    boost["value"]["status"]["reblog"] = boosted;
    let mut renamed = post("p12", 12);
    renamed["value"]["status"]["account"]["display_name"] = json!("Taro");
    let changes = part(HOME, "changes", "s10", false, &[renamed, boost]);
    server.then_news(json!([changes]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pulled, report.work.indexed), (2, 2));

    // The other source has not shown the new name, so the author has two.
    for name in ["taro", "hanako"] {
        assert_eq!(found(&device, name).await, ["p12", "p9", "p8", "q1"]);
    }
    let shown_names = async || {
        let posts = timeline(&device, all()).await.unwrap().into_iter();
        let names = posts.map(|post| {
            let status: serde_json::Value = serde_json::from_str(post.status.get()).unwrap();
            let shown = match status["reblog"].is_object() {
                true => &status["reblog"],
                false => &status,
            };
            shown["account"]["display_name"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        shown_names().await,
        ["Taro", "Taro", "Taro", "Taro", "Hanako"]
    );

    let replica = device.open().await;
    replica.unsubscribe("news").await.unwrap();
    replica.close().await;
    assert_eq!(found(&device, "taro").await, ["p12", "p9", "p8"]);
    assert!(found(&device, "hanako from:ann@a.example").await.is_empty());
    assert_eq!(shown_names().await, ["Taro"; 4]);
}

#[tokio::test]
async fn profiles_go_with_the_posts_that_a_full_sync_does_not_bring() {
    let server = Server::start();
    let by_eve = |name: &str, place: u64, display_name: &str| {
        let mut post = post(name, place);
        let account = json!({"id": "8", "acct": "eve@a.example", "display_name": display_name});
        post["value"]["status"]["account"] = account;
        post
    };
    let home = [posts([9, 8]), vec![by_eve("p7", 7, "Jiro")]].concat();
    let news = vec![by_eve("q1", 1, "Saburo")];
    let sources = [(HOME, "home", home), (NEWS, "news", news)];
    let device = synced(&server, &sources).await;
    assert_eq!(found(&device, "jiro").await, ["p7", "q1"]);
    server.then_news(json!([part(HOME, "full", "t9", false, &posts([9, 8]))]));
    server.then_news(json!([]));
    assert_eq!(device.sync(&server).await.unwrap().work.removed, 1);
    assert!(found(&device, "jiro").await.is_empty());
    assert_eq!(found(&device, "saburo").await, ["q1"]);
    assert_eq!(found(&device, "hanako").await, ["p9", "p8"]);
}

#[tokio::test]
async fn searches_find_posts_before_and_after_the_index_has_read_them() {
    let server = Server::start();
    let device = Device::made(&server).await;
    then_libraries(&server, &[(HOME, "home")]);
    subscribe(&device, &server, &["home"]).await.unwrap();
    let newest = part(HOME, "full", "s8", true, &posts([9, 8]));
    server.then_news(json!([own(), newest]));
    server.then(Answer::Lost);
    let replica = device.open().await;
    let mut random = random;
    let mut context = SyncContext {
        max_indexed: 0,
        ..SyncContext::new(NOW_MS, &mut random)
    };
    let client = device.client(&server);
    let synced = replica.sync(&client, &mut context, Direction::Both).await;
    replica.close().await;
    synced.unwrap_err();
    assert_eq!(status(&device).await.unindexed, 2);
    assert_eq!(found(&device, "p8").await, ["p8"]);
    assert_eq!(found(&device, "-p8").await, ["p9"]);

    // The index does not wait for a good answer.
    server.then(Answer::Lost);
    device.lose_answer(&server).await;
    assert_eq!(status(&device).await.unindexed, 0);
    assert_eq!(found(&device, "p8").await, ["p8"]);

    let oldest = part(HOME, "full", "s9", false, &posts([7]));
    server.then_news(json!([oldest]));
    server.then_news(json!([]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.indexed, 1);
    assert_eq!(status(&device).await.unindexed, 0);
    assert_eq!(found(&device, "p8 OR p7").await, ["p8", "p7"]);

    // One goes, one is edited, and one returns at another place.
    let mut edited = post("p8", 8);
    edited["value"]["status"]["content"] = json!("<p>a cat</p>");
    let mut changes = part(HOME, "changes", "s10", false, &[edited, post("p7", 20)]);
    changes["gone"] = json!([gone("p9")]);
    server.then_news(json!([changes]));
    let report = device.sync(&server).await.unwrap();
    assert_eq!(report.work.indexed, 2);
    assert_eq!(found(&device, "p7 OR p8 OR p9").await, ["p7"]);
    assert_eq!(found(&device, "cat").await, ["p8"]);

    // At another address, the server's own accounts have another host.
    let moved = Server::start();
    moved.then_news(json!([]));
    assert_eq!(
        device.init(&moved).await.unwrap(),
        InitOutcome::TokenRenewed
    );
    assert_eq!(status(&device).await.unindexed, 2);
    moved.then_news(json!([]));
    let report = device.sync(&moved).await.unwrap();
    assert_eq!(report.work.indexed, 2);
    assert_eq!(found(&device, "from:ann@a.example").await, ["p7", "p8"]);
}

#[tokio::test]
async fn a_post_is_named_by_each_of_its_addresses() {
    let server = Server::start();
    let with_url = |name: &str, place: u64| {
        let mut post = post(name, place);
        post["value"]["status"]["url"] = json!(format!("https://a.example/@ann/{name}"));
        post
    };
    let mut boost = with_url("boost", 8);
    let boosted = with_url("boosted", 2)["value"]["status"].take();
    boost["value"]["status"]["reblog"] = boosted;
    let device = synced(&server, &[(HOME, "home", vec![with_url("p1", 9), boost])]).await;
    let replica = device.open().await;
    for (text, expected) in [
        (uri("p1"), uri("p1")),
        (uri("@ann/p1"), uri("p1")),
        (uri("boost"), uri("boosted")),
        (uri("@ann/boosted"), uri("boosted")),
        // A part of an address is another one.
        (uri("@ann/p"), uri("@ann/p")),
        (uri("elsewhere"), uri("elsewhere")),
        ("id:12".to_owned(), "id:12".to_owned()),
    ] {
        let name = replica.post_name(&text).await.unwrap();
        assert_eq!(name, expected, "{text}");
    }
    for text in ["297", "@ann@a.example", "https://a.example/p1 p2"] {
        let error = replica.post_name(text).await.unwrap_err();
        assert!(matches!(error, ReplicaError::NoPost(_)), "{text}: {error}");
    }
    // A note that was made before the post came keeps its name, until it is removed.
    let before = ObjectKey::named(ObjectKind::Note, &uri("@ann/p1")).unwrap();
    let note = json!({ "text": "before" });
    for (value, expected) in [(Some(note), uri("@ann/p1")), (None, uri("p1"))] {
        replica.edit(before.clone(), value).await.unwrap();
        let name = replica.post_name(&uri("@ann/p1")).await.unwrap();
        assert_eq!(name, expected);
    }
    replica.close().await;
}
