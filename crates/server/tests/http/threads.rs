//! Threads: `context` of a status.

use driftline_core::{post::Post, upstream_id::UpstreamId};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    world::{World, numbers, post_of, status},
};

/// A post that replies to another one.
pub(crate) fn reply(n: u64, to: u64) -> Post {
    let mut json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
    json["in_reply_to_id"] = json!(to.to_string());
    Post {
        reply_to: Some(UpstreamId::new(to.to_string())),
        ..post_of(n, &json)
    }
}

pub(crate) fn context_of(id: u64) -> String {
    format!("/api/v1/statuses/{id}/context")
}

/// The numbers of the posts above and below one.
pub(crate) fn shape(context: &Value) -> (Vec<u64>, Vec<u64>) {
    (
        numbers(context["ancestors"].as_array().unwrap()),
        numbers(context["descendants"].as_array().unwrap()),
    )
}

#[tokio::test]
async fn a_thread_is_shown_with_the_ids_that_it_has_here() {
    let world = World::new().await;
    let mut feed = world.feed("a").await;
    let posts = vec![status(1).to_post(), reply(2, 1), reply(3, 2), reply(4, 1)];
    feed.poll_posts(posts).await;
    let first = world.local_id(1).await;
    let second = world.local_id(2).await;
    let context = world.json(&context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![2, 3, 4]));
    let below = &context["descendants"];
    assert_eq!(below[0]["in_reply_to_id"], json!(first.to_string()));
    assert_eq!(below[1]["in_reply_to_id"], below[0]["id"]);
    let context = world.json(&context_of(second)).await;
    assert_eq!(shape(&context), (vec![1], vec![3]));
    for unknown in [0, 7, u64::MAX] {
        let answer = world.answer(&context_of(unknown)).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    world.close().await;
}

#[tokio::test]
async fn those_who_are_muted_are_left_out() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("a").await;
    // By drifter1, drifter2 and drifter3.
    feed.poll_posts(vec![status(1).to_post(), reply(2, 1), reply(3, 2)])
        .await;
    let first = world.local_id(1).await;
    let own = ann.look_up("drifter2@sim.example").await;
    ann.post(&format!("/api/v1/accounts/{own}/mute")).await;
    let context = ann.get(&context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![3]));
    world.close().await;
}
