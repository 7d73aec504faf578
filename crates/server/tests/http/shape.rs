//! The form of a post: every key that Mastodon's clients need, nothing that concerns the reader
//! whose token mirrors it.

use driftline_core::post::{Author, Post};
use driftline_core::upstream_id::UpstreamId;
use serde_json::{Value, json};

use crate::world::{START_MS, World, post_of, status};

const STATUS_KEYS: &str = "id uri created_at account content visibility sensitive spoiler_text \
    media_attachments mentions tags emojis reblogs_count favourites_count replies_count url \
    in_reply_to_id in_reply_to_account_id reblog poll card language edited_at";

const ACCOUNT_KEYS: &str = "id username acct url display_name note avatar avatar_static header \
    header_static locked fields emojis bot group discoverable created_at last_status_at \
    statuses_count followers_count following_count";

#[tokio::test]
async fn every_key_is_there_with_a_value_of_its_kind() {
    let world = World::new().await;
    let sparse = json!({ "id": "2", "visibility": "public" });
    let wrong = json!({
        "id": "3", "account": null, "content": 7, "sensitive": "no", "tags": {}, "mentions": null,
        "emojis": "", "reblogs_count": "4", "poll": [], "card": "none", "reblog": false,
        "media_attachments": null, "language": 3,
    });
    let nobody = Author {
        id: UpstreamId::from(""),
        acct: String::new(),
        display_name: String::new(),
        url: None,
        uri: None,
        raw: "{}".to_owned(),
    };
    let bare = Post {
        author: nobody,
        uri: None,
        url: None,
        created_at_ms: None,
        ..post_of(4, &json!({ "id": 4 }))
    };
    let broken = Post {
        raw: "[]".to_owned(),
        ..status(5).to_post()
    };
    let posts = vec![
        status(1).to_post(),
        post_of(2, &sparse),
        post_of(3, &wrong),
        bare,
        broken,
    ];
    world.feed("home").await.poll_posts(posts).await;
    let page = world.page("/api/v1/timelines/public").await;
    assert_eq!(page.len(), 5);
    for status in &page {
        check_status(status);
        assert_eq!(status["reblog"], Value::Null);
    }
    let bare = &page[1];
    assert_eq!(bare["uri"], "https://sim.example/statuses/4");
    assert_eq!(bare["url"], Value::Null);
    assert_eq!(bare["account"]["id"], "0");
    let written: jiff::Timestamp = bare["created_at"].as_str().unwrap().parse().unwrap();
    let late_ms = written.as_millisecond() - START_MS;
    assert!((0..60_000).contains(&late_ms), "{written}");
    let whole = &page[4];
    assert_eq!(whole["content"], "<p>Post 1</p>");
    assert_eq!(whole["created_at"], "2027-01-15T07:59:00.000Z");
    assert_eq!(whole["favourites_count"], 3);
    assert_eq!(whole["account"]["display_name"], "Drifter 1");
}

#[tokio::test]
async fn accounts_are_named_as_seen_from_here() {
    let world = World::new().await;
    let posts = [status(1), status(2)];
    world.feed("home").await.poll(&posts).await;
    let page = world.page("/api/v1/timelines/public").await;
    assert_eq!(page[0]["account"]["acct"], "drifter2@sim.example");
    assert_eq!(page[0]["account"]["username"], "drifter2");
    assert_eq!(page[1]["account"]["acct"], "drifter1@far.example");
    let ids = [&page[0], &page[1]].map(|status| status["account"]["id"].as_str().unwrap());
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.len() == 19), "no local IDs: {ids:?}");
}

/// Checks the keys of a status and the kinds of their values.
fn check_status(status: &Value) {
    check(status, STATUS_KEYS);
    let account = &status["account"];
    check(account, ACCOUNT_KEYS);
    for key in ["avatar", "avatar_static", "header", "header_static", "url"] {
        let text = account[key].as_str().unwrap();
        assert!(text.starts_with("https://"), "{key}: {text}");
    }
}

fn check(object: &Value, keys: &str) {
    for key in keys.split_ascii_whitespace() {
        let value = object.get(key).unwrap_or_else(|| panic!("no {key}"));
        let fits = match key {
            "account" => value.is_object(),
            "media_attachments" | "mentions" | "tags" | "emojis" | "fields" => value.is_array(),
            "sensitive" | "locked" | "bot" | "group" => value.is_boolean(),
            "discoverable" => value.is_boolean() || value.is_null(),
            "reblog" | "poll" | "card" => value.is_object() || value.is_null(),
            "in_reply_to_id"
            | "in_reply_to_account_id"
            | "language"
            | "edited_at"
            | "last_status_at" => value.is_string() || value.is_null(),
            "url" => value.is_string() || value.is_null(),
            _ if key.ends_with("_count") => value.is_u64(),
            _ => value.is_string(),
        };
        assert!(fits, "{key}: {value}");
    }
    let expected: Vec<&str> = keys.split_ascii_whitespace().collect();
    let optional = [
        "uri",
        "indexable",
        "noindex",
        "hide_collections",
        "roles",
        "pleroma",
    ];
    for key in object.as_object().unwrap().keys() {
        let known = expected.contains(&key.as_str()) || optional.contains(&key.as_str());
        assert!(known, "{key} is unexpected");
    }
}
