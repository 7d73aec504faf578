//! Threads: `context` of a status.

use driftline_core::{
    audience::Audience,
    post::{Post, Visibility},
    upstream_id::UpstreamId,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::people_world,
    reading::{Person, show},
    world::{World, id, post_of, status, uri},
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

pub(crate) fn numbers(statuses: &Value) -> Vec<u64> {
    let statuses = statuses.as_array().unwrap();
    let last = |status| uri(status).rsplit('/').next().unwrap().parse().unwrap();
    statuses.iter().map(last).collect()
}

pub(crate) fn context_of(id: u64) -> String {
    format!("/api/v1/statuses/{id}/context")
}

/// The numbers of the posts above and below one.
pub(crate) fn shape(context: &Value) -> (Vec<u64>, Vec<u64>) {
    (
        numbers(&context["ancestors"]),
        numbers(&context["descendants"]),
    )
}

async fn local_id(world: &World, n: u64) -> u64 {
    let page = world.page("/api/v1/timelines/public?limit=40").await;
    let named = format!("/{n}");
    let found = page.iter().find(|status| uri(status).ends_with(&named));
    id(found.expect("a post"))
}

#[tokio::test]
async fn a_thread_is_shown_with_the_ids_that_it_has_here() {
    let world = World::new().await;
    let mut feed = world.feed("a").await;
    let posts = vec![status(1).to_post(), reply(2, 1), reply(3, 2), reply(4, 1)];
    feed.poll_posts(posts).await;
    let first = local_id(&world, 1).await;
    let second = local_id(&world, 2).await;
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
async fn unlisted_replies_are_named_as_they_are_shown() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("a").await;
    let unlisted = |post: Post| Post {
        visibility: Visibility::Unlisted,
        ..post
    };
    let replies = [unlisted(reply(2, 1)), unlisted(reply(3, 2))];
    feed.poll_posts(vec![status(1).to_post()]).await;
    feed.poll_posts(replies.to_vec()).await;
    let first = local_id(&world, 1).await;
    let context = ann.get(&world, &context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![2, 3]));
    let below = &context["descendants"];
    assert_eq!(below[1]["in_reply_to_id"], below[0]["id"]);
    // Any ID that is shown leads on.
    let context = ann.get(&world, &context_of(id(&below[1]))).await;
    assert_eq!(shape(&context), (vec![1, 2], vec![]));
    world.close().await;
}

#[tokio::test]
async fn a_private_post_of_another_account_is_in_nobodys_thread() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("a").await;
    let mut home = world.feed("home").await;
    show(&world, &home, Audience::Private).await;
    // The operator's own: 3 is known through it alone, and so is that 4 hangs on 2 by it.
    feed.poll_posts(vec![status(1).to_post(), reply(2, 1), reply(4, 3)])
        .await;
    let private = Post {
        visibility: Visibility::Private,
        ..reply(3, 2)
    };
    home.poll_posts(vec![private]).await;
    let first = local_id(&world, 1).await;
    let last = local_id(&world, 4).await;
    let context = ann.get(&world, &context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![2]));
    let context = ann.get(&world, &context_of(last)).await;
    assert_eq!(shape(&context), (vec![], vec![]));
    // Whoever may read it sees the whole thread.
    let context = world.json(&context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![2, 3, 4]));
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
    let first = local_id(&world, 1).await;
    let own = ann.look_up(&world, "drifter2@sim.example").await;
    ann.post(&world, &format!("/api/v1/accounts/{own}/mute"))
        .await;
    let context = ann.get(&world, &context_of(first)).await;
    assert_eq!(shape(&context), (vec![], vec![3]));
    world.close().await;
}
