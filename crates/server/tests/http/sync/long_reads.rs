//! Requests that read much, of which an account has one at a time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use driftline_core::names::audience::Audience;
use driftline_store::Viewer;
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{DIGEST, PULL, keys, pull_of};
use crate::{
    people::{Person, people_world},
    world::{show, status},
};

#[tokio::test(flavor = "multi_thread")]
async fn many_long_requests_of_one_account_hold_up_no_other_account() {
    let mut people = None;
    let (world, _) = people_world(|app| people = Some(app.people.clone())).await;
    let long_reads = people.unwrap().long_reads;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1)]).await;
    show(&world, &feed, Audience::Members).await;
    let ann = Arc::new(Person::new(&world, "ann").await);
    let ben = Person::new(&world, "ben").await;
    let source = format!("source:{}", feed.source.id);
    let requests = [
        (PULL, pull_of(&source, None)),
        (DIGEST, json!({ "library": source })),
        (DIGEST, json!({"library": "account"})),
    ];

    // As if the account read for long.
    let turn = long_reads.turn(Viewer::Account(ann.id)).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let waiting = requests.iter().cycle().take(12).cloned();
    let waiting = waiting.map(|(path, body)| {
        let (ann, is_over) = (Arc::clone(&ann), Arc::clone(&is_over));
        tokio::spawn(async move {
            let (status, _) = ann.send(Method::POST, path, &body).await;
            (status, is_over.load(Ordering::SeqCst))
        })
    });
    let waiting: Vec<_> = waiting.collect();
    for (path, body) in &requests {
        ben.post_json(path, body).await;
    }
    // Short requests of the account do not wait either.
    for _ in 0..3 {
        ann.post_json(PULL, &pull_of("account", None)).await;
        ann.page("/api/v1/timelines/home").await;
        ben.page("/api/v1/timelines/public").await;
    }
    is_over.store(true, Ordering::SeqCst);
    drop(turn);
    for answered in join_all(waiting).await {
        assert_eq!(answered.unwrap(), (StatusCode::OK, true));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_has_no_more_changes_than_its_bytes_have_room_for() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("feed").await;
    let posts: Vec<_> = (1..=60).map(status).collect();
    for posts in posts.chunks(20) {
        feed.poll(posts).await;
    }
    show(&world, &feed, Audience::Members).await;
    let source = format!("source:{}", feed.source.id);
    let all = super::news(&ann, &source, None).await;
    assert_eq!(keys(&all["objects"]).len(), 60);
    for n in 1..=60 {
        feed.delete(n).await;
    }
    let mut request = pull_of(&source, Some(&all["cursor"]));
    request["max_entries"] = json!(1_000);
    request["max_bytes"] = json!(10_000);
    let mut gone = BTreeSet::new();
    for _ in 0..10 {
        let answer = ann.post_json(PULL, &request).await;
        let news = &answer["news"][0];
        let part = keys(&news["gone"]);
        assert!(part.len() <= 40, "{}", part.len());
        gone.extend(part.into_iter().map(str::to_owned));
        request["libraries"][0]["cursor"] = news["cursor"].clone();
        if news["more"] == false {
            break;
        }
    }
    assert_eq!(gone.len(), 60);
    world.close().await;
}
