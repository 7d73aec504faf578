//! Edit histories that are fetched from their servers along with threads.

use driftline_core::names::audience::Audience;
use driftline_server::testing::wait;
use driftline_sim::Status;
use driftline_store::Owner;
use serde_json::{Value, json};

use crate::{
    people::Person,
    threads::context_of,
    threads_fetched::{MANY, Scene, json_of, thread},
    world::{START_MS, author, id, status, uri},
};

/// A post that was edited before any source had it.
fn edited(n: u64) -> Status {
    Status {
        edited_at_ms: Some(START_MS - 1_000),
        content: format!("<p>Post {n} now</p>"),
        ..status(n)
    }
}

fn edited_json(n: u64, to: u64) -> Value {
    let mut json = json_of(n, Some(to));
    json["edited_at"] = json!(time(-1_000));
    json
}

fn time(after_ms: i64) -> String {
    driftline_mastodon::iso_8601(START_MS + after_ms)
}

/// The versions of an edited post, as Mastodon lists them.
fn versions(n: u64) -> Value {
    let version = |text: &str, after_ms: i64| {
        json!({
            "content": format!("<p>Post {n} {text}<script>evil()</script></p>"),
            "spoiler_text": "", "sensitive": true, "created_at": time(after_ms),
            "account": account_json(n), "media_attachments": [], "emojis": [],
        })
    };
    json!([
        version("first", -60_000),
        version("second", -30_000),
        version("now", -1_000)
    ])
}

fn account_json(n: u64) -> Value {
    let json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
    assert_eq!(json["account"]["acct"], author(n % 5).acct());
    json["account"].clone()
}

fn history_of(id: u64) -> String {
    format!("/api/v1/statuses/{id}/history")
}

fn asked(token: Option<&str>, n: u64) -> (Option<String>, String) {
    (token.map(|token| format!("Bearer {token}")), history_of(n))
}

impl Scene {
    fn has_history(&self, token: Option<&str>, n: u64, versions: Value) {
        self.upstream.pages.lock().insert(asked(token, n), versions);
    }

    fn asked_for(&self) -> Vec<(Option<String>, String)> {
        self.upstream.asked_paths.lock().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_from_before_the_first_poll_are_shown_in_their_order() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let mut feed = scene.public().await;
    feed.poll(&[edited(1), status(2)]).await;
    let (local_id, other) = (scene.local_id(1).await, scene.local_id(2).await);
    let history = history_of(local_id);
    scene.answers(None, 1, thread(&[], &[]));
    scene.answers(None, 2, thread(&[], &[]));
    scene.has_history(None, 1, versions(1));
    assert_eq!(scene.json(&context_of(local_id)).await, thread(&[], &[]));
    assert_eq!(scene.asked_for(), [], "nothing for strangers");
    // Nothing is missing of a post that was not edited.
    ann.get(&context_of(other)).await;
    ann.get(&context_of(local_id)).await;
    wait("the history", async || {
        scene.page(&history).await.len() == 3
    })
    .await;
    let shown = scene.page(&history).await;
    let texts: Vec<_> = shown
        .iter()
        .map(|edit| {
            (
                edit["content"].as_str().unwrap(),
                edit["created_at"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("<p>Post 1 first</p>", time(-60_000)),
        ("<p>Post 1 second</p>", time(-30_000)),
        ("<p>Post 1 now</p>", time(-1_000)),
    ];
    let expected: Vec<_> = expected.iter().map(|(text, at)| (*text, &**at)).collect();
    assert_eq!(texts, expected);
    let post = scene.json(&format!("/api/v1/statuses/{local_id}")).await;
    for edit in &shown {
        assert_eq!(edit["account"]["id"], post["account"]["id"]);
    }
    assert_eq!(shown[0]["sensitive"], json!(true));
    assert_eq!(scene.asked_for(), [asked(None, 1)]);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_a_token_shows_is_its_owners_alone() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    let mut public = scene.public().await;
    let owner = Owner::Account(ann.id);
    let home = scene
        .source(owner, Audience::Private, Some("ann-token"))
        .await;
    let mut home = scene.feed_of(home);
    home.poll(&[]).await;
    home.poll(&[edited(5)]).await;
    public.poll(&[edited(1)]).await;
    let page = ann.page("/api/v1/timelines/public").await;
    let hers = page.iter().find(|status| uri(status).ends_with("/5"));
    let local_id = id(hers.unwrap());
    let history = history_of(local_id);
    for n in [1, 5] {
        scene.answers(Some("ann-token"), n, thread(&[], &[]));
    }
    for token in [Some("ann-token"), None] {
        scene.has_history(token, 5, versions(5));
        scene.has_history(token, 1, versions(1));
    }
    ann.get(&context_of(local_id)).await;
    wait("her history", async || ann.page(&history).await.len() == 3).await;
    // The world was shown the post, so its history is requested without her token, for all.
    let first = scene.local_id(1).await;
    ann.get(&context_of(first)).await;
    wait("the history", async || {
        scene.page(&history_of(first)).await.len() == 3
    })
    .await;
    assert_eq!(
        scene.asked_for(),
        [asked(Some("ann-token"), 5), asked(None, 1)]
    );
    // Once others see the post, they see what the world was shown of it.
    public.now_ms = home.now_ms.max(public.now_ms);
    public.poll(&[edited(5), edited(1)]).await;
    let of_world = history_of(scene.local_id(5).await);
    assert_eq!(bob.page(&of_world).await.len(), 1);
    assert_eq!(scene.page(&of_world).await.len(), 1);
    assert_eq!(ann.page(&history).await.len(), 3);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_histories_or_with_other_answers_is_asked_once_for_each() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let mut feed = scene.public().await;
    feed.poll(&[edited(1), edited(2), edited(3), edited(4)])
        .await;
    let mut local = Vec::new();
    for n in 1..=4 {
        local.push(scene.local_id(n).await);
    }
    let [first, second, third, fourth] = local[..] else {
        panic!("{local:?}")
    };
    // The first has no history, and the second an answer that is no list.
    scene.has_history(None, 2, json!({ "versions": [] }));
    scene.has_history(None, 3, versions(3));
    scene.has_history(None, 4, versions(4));
    let below = |all: &[u64]| all.iter().map(|n| edited_json(*n, 1)).collect::<Vec<_>>();
    scene.answers(None, 1, thread(&[], &below(&[2, 3])));
    scene.answers(None, 3, thread(&[edited_json(1, 9)], &[]));
    scene.answers(None, 4, thread(&[], &[edited_json(1, 4)]));
    let lengths = async |id: u64| scene.page(&history_of(id)).await.len();
    ann.get(&context_of(first)).await;
    wait("the third history", async || lengths(third).await == 3).await;
    assert_eq!((lengths(first).await, lengths(second).await), (1, 1));
    for opened in [third, fourth] {
        ann.get(&context_of(opened)).await;
        wait("a history", async || lengths(opened).await == 3).await;
    }
    let expected = [1, 2, 3, 4].map(|n| asked(None, n));
    assert_eq!(scene.asked_for(), expected);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_edited_posts_has_a_few_histories_fetched() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let mut feed = scene.public().await;
    let posts: Vec<Status> = (1..=10).map(edited).collect();
    feed.poll(&posts).await;
    for n in 1..=10 {
        scene.has_history(None, n, versions(n));
    }
    let below: Vec<Value> = (2..=9).map(|n| edited_json(n, 1)).collect();
    scene.answers(None, 1, thread(&[], &below));
    scene.answers(None, 10, thread(&[], &[]));
    for (opened, last) in [(1, 4), (10, 10)] {
        let (opened, last) = (scene.local_id(opened).await, scene.local_id(last).await);
        ann.get(&context_of(opened)).await;
        let history = history_of(last);
        wait("the last history", async || {
            scene.page(&history).await.len() == 3
        })
        .await;
    }
    let expected = [1, 2, 3, 4, 10].map(|n| asked(None, n));
    assert_eq!(scene.asked_for(), expected);
    scene.close().await;
}
