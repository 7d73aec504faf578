//! Chunks, each stored whole or not at all: counts of posts that they bring, and removals that a person must agree to.

use std::ops::RangeInclusive;

use driftline_replica::ReplicaError;
use serde_json::{Value, json};

use crate::support::{
    Device, ONCE, Server,
    notes::{self, OTHER, POST, status, texts, with_two},
    sources::{HOME, all, counted, gone, names, part, post, posts, synced, timeline, uri},
};

/// The key of a note.
fn numbered(number: u64) -> String {
    format!("note:https://a.example/{number}")
}

/// A device with 50 notes.
async fn with_fifty(server: &Server) -> Device {
    let objects = (1..=50).map(|number| notes::object(&numbered(number), number, "a"));
    notes::synced(server, objects.collect()).await
}

/// The ends of the notes with these numbers.
fn ends(numbers: RangeInclusive<u64>) -> Value {
    numbers
        .map(|number| json!({"key": numbered(number), "usn": (100 + number).to_string()}))
        .collect()
}

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
    let device = with_fifty(&server).await;
    let chunk = notes::chunk("changes", "c130", true, json!([]), ends(1..=30));
    server.then_news(chunk);
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
        changes["gone"] = numbers.map(|n| gone(&format!("p{n}"))).collect();
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

#[tokio::test]
async fn a_chunk_and_its_cursor_are_stored_together_or_not_at_all() {
    let server = Server::start();
    let device = with_fifty(&server).await;
    let before = (status(&device).await, device.objects().await);
    let added = json!([notes::object(&numbered(60), 131, "a")]);
    let chunk = notes::chunk("changes", "c131", false, added, ends(1..=30));
    // The brake ends the transaction after the objects were written.
    server.then_news(chunk.clone());
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::ManyRemoved { .. }), "{error}");
    assert_eq!((status(&device).await, device.objects().await), before);

    server.then_news(chunk);
    device.sync_with(&server, ONCE, true).await.unwrap();
    let cursors = server.requests().into_iter().map(|pull| pull.cursor());
    assert_eq!(cursors.collect::<Vec<_>>(), ["c9", "c9"]);
    assert_eq!(device.objects().await.len(), 21);
    assert_eq!(status(&device).await.cursor.as_deref(), Some("c131"));
}

#[tokio::test]
async fn a_chunk_that_comes_twice_changes_nothing_more() {
    let server = Server::start();
    let device = with_two(&server).await;
    for _ in 0..2 {
        let gone = json!([{"key": OTHER, "usn": "11"}]);
        let changed = json!([notes::object(POST, 10, "c")]);
        server.then_news(notes::chunk("changes", "c11", false, changed, gone));
        let report = device.sync(&server).await.unwrap();
        assert_eq!(report.new_conflicts, 0);
        assert_eq!(texts(&device.objects().await), [(POST, "c")]);
    }
    assert!(server.requests().iter().all(|request| !request.is_push()));
}

#[tokio::test]
async fn most_of_a_replica_is_removed_only_if_a_person_agrees() {
    let server = Server::start();
    let device = with_fifty(&server).await;
    // In two chunks, of which the first one alone is not many.
    for is_agreed in [false, false, true] {
        if !is_agreed && status(&device).await.cursor.as_deref() == Some("c9") {
            let first = notes::chunk("changes", "c110", true, json!([]), ends(1..=10));
            server.then_news(first);
        }
        let second = notes::chunk("changes", "c130", false, json!([]), ends(11..=30));
        server.then_news(second);
        let outcome = device.sync_with(&server, ONCE, is_agreed).await;
        let left = device.objects().await.len();
        match is_agreed {
            false => {
                let error = outcome.unwrap_err();
                assert!(
                    matches!(
                        error,
                        ReplicaError::ManyRemoved {
                            removed: 30,
                            all: 50,
                            ..
                        }
                    ),
                    "{error}"
                );
                assert_eq!(left, 40);
            }
            true => assert_eq!((outcome.unwrap().work.removed, left), (20, 20)),
        }
    }
}
