//! Chunks whose parts depend on one another: counts of posts that they bring, and removals that a person must agree to.
#![allow(clippy::unwrap_used)]

mod support;

use std::ops::RangeInclusive;

use driftline_replica::ReplicaError;
use serde_json::{Value, json};
use support::{
    ONCE, Server,
    notes::{self, status},
    sources::{HOME, all, counted, names, part, post, posts, synced, timeline, uri},
};

#[tokio::test]
async fn counts_change_the_post_that_came_before_them_in_a_chunk() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts([1, 2]))]).await;
    let edited = |name: &str, place: u64, text: &str| {
        let mut post = post(name, place);
        post["value"]["status"]["content"] = json!(text);
        post
    };
    let mut with_others = counted("p1", 1);
    with_others["value"]["update"]["replies_count"] = json!(7);
    let chunks = [
        // The counts are those of the version before.
        (
            vec![counted("p1", 1), edited("p1", 1, "b")],
            "b",
            Value::Null,
        ),
        (vec![edited("p1", 1, "c"), counted("p1", 1)], "c", json!(5)),
        (
            vec![counted("p1", 1), with_others, counted("p2", 2)],
            "c",
            json!(5),
        ),
        (vec![edited("p1", 9, "d"), counted("p1", 9)], "d", json!(5)),
        (vec![post("p3", 3), counted("p3", 3)], "d", json!(5)),
    ];
    for (n, (objects, text, favourites)) in chunks.into_iter().enumerate() {
        let changes = part(HOME, "changes", &format!("t{n}"), false, &objects);
        server.then_news(json!([changes]));
        device.sync(&server).await.unwrap();
        let posts = timeline(&device, all()).await.unwrap().into_iter();
        let statuses = posts.map(|post| serde_json::from_str::<Value>(post.status.get()).unwrap());
        let statuses: Vec<Value> = statuses.collect();
        let first = statuses.iter().find(|of| of["uri"] == uri("p1")).unwrap();
        assert_eq!(
            (&first["content"], &first["favourites_count"]),
            (&json!(text), &favourites),
            "{n}"
        );
        if n == 2 {
            assert_eq!(first["replies_count"], 7);
        }
        assert!(status(&device).await.subscriptions[0].is_complete, "{n}");
    }
}

#[tokio::test]
async fn nothing_is_requested_before_a_person_agrees() {
    let server = Server::start();
    let key = |number: u64| format!("note:https://a.example/{number}");
    let objects: Vec<Value> = (1..=50).map(|n| notes::object(&key(n), n, "a")).collect();
    let device = notes::synced(&server, json!(objects)).await;
    let gone = (1..=30).map(|n| json!({"key": key(n), "usn": (100 + n).to_string()}));
    let gone = json!(gone.collect::<Vec<_>>());
    server.then_news(notes::chunk("changes", "c130", true, json!([]), gone));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::ManyRemoved { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_source_whose_posts_go_in_several_chunks_is_braked() {
    let server = Server::start();
    let device = synced(&server, &[(HOME, "home", posts(1..=50))]).await;
    let chunk = |cursor: &str, more: bool, numbers: RangeInclusive<u64>| {
        let mut changes = part(HOME, "changes", cursor, more, &[]);
        let gone: Vec<Value> = numbers
            .map(|n| json!({"key": format!("post:{}", uri(&format!("p{n}"))), "usn": "0"}))
            .collect();
        changes["gone"] = json!(gone);
        json!([changes])
    };
    let braked = |error: ReplicaError| match error {
        ReplicaError::ManyRemoved { removed, all, .. } => (removed, all),
        other => panic!("{other}"),
    };
    // The chunk after one that removes is requested once that is stored.
    server.then_news(chunk("s10", true, 1..=30));
    let error = device.sync(&server).await.unwrap_err();
    assert_eq!(braked(error), (30, 50));
    assert_eq!(server.requests().len(), 1);

    server.then_news(chunk("s10", true, 1..=10));
    for is_agreed in [false, false, true] {
        server.then_news(chunk("s11", false, 11..=30));
        let outcome = device.sync_with(&server, ONCE, is_agreed).await;
        let left = names(&device, all()).await.len();
        match is_agreed {
            false => assert_eq!((braked(outcome.unwrap_err()), left), ((30, 50), 40)),
            true => assert_eq!((outcome.unwrap().work.removed, left), (20, 20)),
        }
    }
    // The next pull counts from its own beginning.
    server.then_news(chunk("s12", false, 31..=40));
    assert_eq!(device.sync(&server).await.unwrap().work.removed, 10);
    assert_eq!(server.answers_left(), 0);
}
