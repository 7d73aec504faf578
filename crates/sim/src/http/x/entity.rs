//! Posts and users in version 2's JSON.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::fields::{AUTHORS_OF_REFERENCED, Fields};
use crate::{
    http::tweet::{ACCOUNTS_MADE_AT_MS, LANGUAGE, Tweet},
    status::SimAuthor,
    wire::iso_8601,
};

/// `data` and `includes` of an answer with several posts; without posts there
/// is neither.
pub(super) fn several(tweets: &[Tweet<'_>], fields: &Fields) -> Map<String, Value> {
    let mut body = Map::new();
    if tweets.is_empty() {
        return body;
    }
    let data: Vec<Value> = tweets.iter().map(|it| tweet(it, fields)).collect();
    body.insert("data".into(), data.into());
    body.extend(includes(tweets, fields));
    body
}

/// `data` and `includes` of an answer with one post.
pub(super) fn one(it: &Tweet<'_>, fields: &Fields) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("data".into(), tweet(it, fields));
    body.extend(includes(std::slice::from_ref(it), fields));
    body
}

pub(super) fn user(author: &SimAuthor, fields: &Fields) -> Value {
    let id = author.id.to_string();
    let mut user = json!({
        "id": id,
        "name": author.display_name(),
        "username": author.name,
    });
    for (name, value) in [
        ("created_at", json!(iso_8601(ACCOUNTS_MADE_AT_MS, 3))),
        ("description", json!("")),
        ("protected", json!(false)),
        ("verified", json!(false)),
        ("verified_type", json!("none")),
        ("url", json!("")),
        (
            "profile_image_url",
            json!("https://pbs.twimg.com/profile_images/1/default_normal.png"),
        ),
        (
            "public_metrics",
            json!({
                "followers_count": 12,
                "following_count": 34,
                "tweet_count": 56,
                "listed_count": 7,
                "like_count": 8,
                "media_count": 0,
            }),
        ),
    ] {
        if fields.user(name) {
            user[name] = value;
        }
    }
    user
}

fn tweet(tweet: &Tweet<'_>, fields: &Fields) -> Value {
    let id = tweet.status.id.as_str();
    let mut value = json!({
        "id": id,
        "text": tweet.text(),
        "edit_history_tweet_ids": [id],
    });
    for (name, content) in [
        ("author_id", json!(tweet.author().id.to_string())),
        ("conversation_id", json!(id)),
        (
            "created_at",
            json!(iso_8601(tweet.status.created_at_ms / 1000 * 1000, 3)),
        ),
        ("lang", json!(LANGUAGE)),
        ("possibly_sensitive", json!(false)),
        ("reply_settings", json!("everyone")),
        ("public_metrics", metrics(tweet)),
    ] {
        if fields.tweet(name) {
            value[name] = content;
        }
    }
    if let Some(boosted) = &tweet.boosted
        && fields.tweet("referenced_tweets")
    {
        let id = boosted.status.id.as_str();
        value["referenced_tweets"] = json!([{ "type": "retweeted", "id": id }]);
    }
    value
}

fn metrics(tweet: &Tweet<'_>) -> Value {
    let counts = &tweet.counts;
    json!({
        "retweet_count": counts.boosts.unwrap_or(0),
        "reply_count": counts.replies.unwrap_or(0),
        "like_count": counts.favourites.unwrap_or(0),
        "quote_count": counts.quotes.unwrap_or(0),
        "bookmark_count": 0,
        "impression_count": counts.views.unwrap_or(0),
    })
}

/// What the expansions ask for, each once.
fn includes(tweets: &[Tweet<'_>], fields: &Fields) -> Option<(String, Value)> {
    let mut includes = Map::new();
    let referenced = || tweets.iter().filter_map(|tweet| tweet.boosted.as_deref());
    let mut users = Vec::new();
    let mut seen = HashSet::new();
    let authors = tweets.iter().filter(|_| fields.expands("author_id"));
    let more = referenced().filter(|_| fields.expands(AUTHORS_OF_REFERENCED));
    for author in authors.chain(more).map(Tweet::author) {
        if seen.insert(author.id) {
            users.push(user(author, fields));
        }
    }
    if !users.is_empty() {
        includes.insert("users".into(), users.into());
    }
    let mut seen = HashSet::new();
    let posts: Vec<Value> = referenced()
        .filter(|_| fields.expands_referenced())
        .filter(|it| seen.insert(it.status.id.clone()))
        .map(|it| tweet(it, fields))
        .collect();
    if !posts.is_empty() {
        includes.insert("tweets".into(), posts.into());
    }
    (!includes.is_empty()).then(|| ("includes".to_owned(), includes.into()))
}
