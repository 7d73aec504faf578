//! What posts name: answers hold local IDs alone, for what is stored, hidden and unknown alike.

use driftline_core::post::{Post, Visibility};
use driftline_mastodon::read_status;
use reqwest::StatusCode;
use serde_json::{Value, json, value::to_raw_value};

use crate::world::{Feed, World, id, status};

/// A status of an upstream whose IDs end alike, as its API answers it.
fn json_of(n: u64, mut members: Value) -> Value {
    let mut status: Value = serde_json::from_str(&status(n).to_json()).unwrap();
    let account = json!({
        "id": upstream(900 + n), "username": "ann", "acct": "ann", "moved": null,
        "fqn": "ann@sim.example", "statuses_count": 4,
    });
    status["account"] = account;
    let members = members.as_object_mut().unwrap();
    status.as_object_mut().unwrap().append(members);
    status["id"] = json!(upstream(n));
    status
}

fn upstream(n: u64) -> String {
    format!("{n}777000777")
}

fn read(status: &Value) -> Post {
    read_status(&to_raw_value(status).unwrap()).unwrap()
}

fn naming(n: u64) -> Value {
    let quoted = json_of(30, json!({}));
    let hidden = json_of(40, json!({ "visibility": "private", "content": "secret" }));
    json_of(
        n,
        json!({
            "in_reply_to_id": upstream(50), "in_reply_to_account_id": upstream(950),
            "quote": { "state": "accepted", "quoted_status": quoted },
            "quotes_count": 2, "quote_id": upstream(30), "text": "source",
            "interaction_policy": { "can_reply": { "always": ["public"] } },
            "emoji_reactions": [{ "name": "x", "me": true, "account_ids": [upstream(951)] }],
            "pleroma": { "quote": hidden, "quote_id": upstream(40), "thread_muted": true },
            "mentions": [{ "id": upstream(952), "username": "b", "acct": "b", "url": "u" }],
            "favourited": true,
        }),
    )
}

async fn poll(feed: &mut Feed, posts: &[Value]) {
    let mut posts: Vec<Post> = posts.iter().map(read).collect();
    // The world sorts them by number.
    posts.sort_by_key(|post| std::cmp::Reverse(post.id.as_str().parse::<u64>().unwrap()));
    feed.poll_posts(posts).await;
}

#[tokio::test]
async fn answers_hold_what_came_with_local_ids() {
    let world = World::of_strangers().await;
    let mut feed = world.feed("home").await;
    poll(
        &mut feed,
        &[json_of(40, json!({ "visibility": "private" }))],
    )
    .await;
    poll(&mut feed, &[naming(60)]).await;
    let page = world.page("/api/v1/timelines/public").await;
    let [status] = page.as_slice() else {
        panic!("{page:?}")
    };
    let text = json!(status).to_string();
    assert!(
        !text.contains("777000777") && !text.contains("secret"),
        "{text}"
    );
    assert_eq!(status["text"], "source");
    assert_eq!(status["quotes_count"], 2);
    assert_eq!(
        status["interaction_policy"]["can_reply"]["always"][0],
        "public"
    );
    assert_eq!(status["quote"]["state"], "accepted");
    assert_eq!(status["quote"]["quoted_status"]["id"], status["quote_id"]);
    assert_eq!(
        status["quote"]["quoted_status"]["account"]["acct"],
        "ann@sim.example"
    );
    assert_eq!(status["pleroma"]["quote"], Value::Null);
    assert_eq!(status["account"]["fqn"], "ann@sim.example");
    for of_reader in ["favourited", "thread_muted", "me"] {
        assert!(!text.contains(&format!("\"{of_reader}\"")), "{of_reader}");
    }
    // Unknown, hidden and quoted posts have IDs of one kind, under which nothing is found.
    for local in [
        &status["in_reply_to_id"],
        &status["quote_id"],
        &status["pleroma"]["quote_id"],
    ] {
        let local: u64 = local.as_str().unwrap().parse().unwrap();
        assert!(local < id(status) && local > id(status) - 100, "{local}");
        let path = format!("/api/v1/statuses/{local}");
        assert_eq!(world.answer(&path).await.status(), StatusCode::NOT_FOUND);
    }
    // What arrives is found under the ID by which it was named.
    let unknown = status["in_reply_to_id"].clone();
    poll(&mut feed, &[json_of(70, json!({})), json_of(50, json!({}))]).await;
    let path = format!("/api/v1/statuses/{}", unknown.as_str().unwrap());
    let arrived = world.json(&path).await;
    let page = world.page("/api/v1/timelines/public").await;
    let reply = page.iter().find(|post| post["text"] == "source").unwrap();
    let parent = page
        .iter()
        .find(|post| post["uri"] == arrived["uri"])
        .unwrap();
    assert_eq!(reply["in_reply_to_id"], parent["id"]);
    // Its author goes by the name, now that this is known.
    let author = &arrived["account"]["id"];
    assert_eq!(&reply["in_reply_to_account_id"], author);
    assert!(id(parent) > id(reply));
    world.close().await;
}

#[tokio::test]
async fn a_quoted_post_that_not_everyone_may_see_is_not_shown() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    let hidden = json_of(40, json!({ "visibility": "private", "content": "secret" }));
    let quote = json!({ "state": "accepted", "quoted_status": hidden });
    poll(&mut feed, &[json_of(60, json!({ "quote": quote }))]).await;
    let page = world.page("/api/v1/timelines/public").await;
    let expected = json!({ "state": "unauthorized", "quoted_status": null });
    assert_eq!(page[0]["quote"], expected);
    assert_eq!(read(&hidden).visibility, Visibility::Private);
}
