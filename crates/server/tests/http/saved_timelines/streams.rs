//! Streams of saved timelines.

use driftline_store::{Root, StoreError};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{path_of, quakes, save};
use crate::{
    people::{Person, people_world},
    search::{read, written},
    streaming::Socket,
};

/// A stream of such a list has its new posts, and the deletion of a post that an edit takes out of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_follows_a_saved_timeline() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(quakes([1])).await;
    let list = save(&ann, "地震").await;
    let query = path_of(
        &list,
        &format!("?stream=list&list=ID&access_token={}", ann.token),
    );
    let mut socket = Socket::open(&world, &query, None).await.unwrap();
    feed.poll_posts(quakes([2, 3])).await;
    let (_, event, shown) = socket.told().await;
    assert_eq!(
        (event, &shown["id"]),
        (
            json!("update"),
            &ann.page(&path_of(&list, "/api/v1/timelines/list/ID")).await[0]["id"]
        )
    );
    let edited = |html: &str, at: &str| {
        let mut status = written(3, html);
        status["edited_at"] = json!(at);
        vec![read(&status)]
    };
    feed.poll_posts(edited("<p>地震でした</p>", "2026-02-03T05:00:00.000Z"))
        .await;
    assert_eq!(socket.told().await.1, "status.update");
    feed.poll_posts(edited("<p>犬でした</p>", "2026-02-03T06:00:00.000Z"))
        .await;
    let (_, event, gone) = socket.told().await;
    assert_eq!((event, gone), (json!("delete"), shown["id"].clone()));
    feed.poll_posts(quakes([4, 5])).await;
    assert_eq!(
        socket.told().await.2["id"],
        ann.page(&path_of(&list, "/api/v1/timelines/list/ID")).await[0]["id"]
    );
}

/// A stream that shows nothing because its list has an unreadable predicate is refused with the reason, and one that
/// was open before ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_a_list_with_an_unreadable_predicate_is_refused() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    let list = save(&ann, "地震").await;
    let token = format!("?access_token={}", ann.token);
    let query = format!("{token}{}", path_of(&list, "&stream=list&list=ID"));
    let mut open = Socket::open(&world, &query, None).await.unwrap();
    let written = world.store.write(Root::none(), |tx| {
        let json = r#"{"folding":9,"tree":{"near":[]}}"#;
        tx.execute("update list set predicate = $1", &[&json])?;
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
    feed.poll_posts(quakes([1])).await;
    assert_eq!(open.next().await, None);

    assert_eq!(Socket::open(&world, &query, None).await.err(), Some(422));
    let route = path_of(&list, "/api/v1/streaming/list?list=ID");
    let (status, answer) = ann.send(Method::GET, &route, &Value::Null).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let reason = answer["error"].as_str().unwrap();
    assert!(reason.contains("cannot be read"), "{reason}");
    // A socket keeps its other streams. It answers in order, so the first one has begun by then.
    let mut socket = Socket::open(&world, &token, None).await.unwrap();
    for stream in ["public", "list"] {
        let subscribe = json!({ "type": "subscribe", "stream": stream, "list": list["id"] });
        socket.send(&subscribe).await;
    }
    let refused = json!({ "error": reason, "status": 422 });
    assert_eq!(socket.next().await, Some(refused));
    feed.poll_posts(quakes([2])).await;
    assert_eq!(socket.told().await.1, "update");
}
