//! The parameters that select among an account's posts.

use driftline_mastodon::read_status;
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    people::{Person, people_world},
    world::{id, numbers, status},
};

#[tokio::test(flavor = "multi_thread")]
async fn each_parameter_selects_among_an_accounts_posts() {
    let (world, _) = people_world(|_| {}).await;
    let bob = Person::new(&world, "bob").await;
    let mut feed = world.feed("news").await;
    let of = |n: u64, more: Value| {
        let mut json: Value = serde_json::from_str(&status(n).to_json()).unwrap();
        json["account"] = json!({ "id": "5", "username": "eve", "acct": "eve" });
        for (name, value) in more.as_object().unwrap() {
            json[name] = value.clone();
        }
        read_status(&to_raw_value(&json).unwrap()).unwrap()
    };
    let media = json!([{ "id": "1", "type": "image", "url": "https://sim.example/1.png" }]);
    let tags = json!([{ "name": "Cats" }]);
    let mut boosted: Value = serde_json::from_str(&status(16).to_json()).unwrap();
    (boosted["media_attachments"], boosted["tags"]) = (media.clone(), tags.clone());
    let to = |post: &str, account: &str| json!({ "in_reply_to_id": post, "in_reply_to_account_id": account });
    feed.poll_posts(vec![
        of(1, json!({})),
        of(2, json!({ "media_attachments": media.clone(), "tags": tags.clone() })),
        of(3, to("1", "5")),
        of(4, to("9", "7")),
        of(5, json!({ "tags": tags })),
        of(6, json!({ "reblog": boosted })),
        of(7, json!({ "in_reply_to_id": "9" })),
        of(8, json!({ "in_reply_to_id": "9", "in_reply_to_account_id": "7", "media_attachments": media })),
    ])
    .await;
    let page = bob.page("/api/v1/timelines/public").await;
    let path = format!("/api/v1/accounts/{}/statuses", id(&page[0]["account"]));
    for (query, posts) in [
        ("", &[8, 7, 6, 5, 4, 3, 2, 1][..]),
        ("exclude_replies=true", &[6, 5, 3, 2, 1]),
        ("exclude_reblogs=true", &[8, 7, 5, 4, 3, 2, 1]),
        ("only_media=true", &[8, 2]),
        ("tagged=cats", &[5, 2]),
        ("tagged=%EF%BC%A3ats", &[5, 2]),
        ("tagged=cat", &[]),
        ("only_media=true&exclude_replies=true", &[2]),
        ("tagged=CATS&only_media=1&exclude_reblogs=1", &[2]),
        ("exclude_replies=true&exclude_reblogs=true&limit=2", &[5, 3]),
        ("pinned=true", &[]),
    ] {
        assert_eq!(
            numbers(&bob.page(&format!("{path}?{query}")).await),
            posts,
            "{query}"
        );
    }
    // The page of whom one mutes has their posts all the same.
    let account = id(&page[0]["account"]);
    bob.post(&format!("/api/v1/accounts/{account}/mute")).await;
    assert_eq!(
        numbers(&bob.page(&format!("{path}?only_media=true")).await),
        [8, 2]
    );
    assert_eq!(bob.page("/api/v1/timelines/public").await, [""; 0]);
    world.close().await;
}
