//! Posts and users in version 2's JSON.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::fields::{AUTHORS_OF_REFERENCED, Fields};
use crate::{
    http::tweet::{ACCOUNTS_MADE_AT_MS, LANGUAGE, Tweet},
    status::SimAuthor,
    wire::iso_8601,
};

/// `data` and `includes` of an answer; without posts there
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

pub(super) fn user(author: &SimAuthor, fields: &Fields) -> Value {
    let user = json!({
        "id": author.id.to_string(),
        "name": author.display_name(),
        "username": author.name,
        "created_at": iso_8601(ACCOUNTS_MADE_AT_MS, 3),
        "description": "",
        "protected": false,
        "verified": false,
        "verified_type": "none",
        "url": "",
        "profile_image_url": "https://pbs.twimg.com/profile_images/1/default_normal.png",
        "public_metrics": {
            "followers_count": 12,
            "following_count": 34,
            "tweet_count": 56,
            "listed_count": 7,
            "like_count": 8,
            "media_count": 0,
        },
    });
    shown(user, &["id", "name", "username"], |name| fields.user(name))
}

fn tweet(tweet: &Tweet<'_>, fields: &Fields) -> Value {
    let id = tweet.status.id.as_str();
    let mut value = json!({
        "id": id,
        "text": tweet.text(),
        "edit_history_tweet_ids": [id],
        "author_id": tweet.author().id.to_string(),
        "conversation_id": id,
        "created_at": iso_8601(tweet.status.created_at_ms / 1000 * 1000, 3),
        "lang": LANGUAGE,
        "possibly_sensitive": false,
        "reply_settings": "everyone",
        "public_metrics": metrics(tweet),
    });
    if let Some(boosted) = &tweet.boosted {
        let reference = json!({ "type": "retweeted", "id": boosted.status.id });
        value["referenced_tweets"] = json!([reference]);
    }
    let always = ["id", "text", "edit_history_tweet_ids"];
    shown(value, &always, |name| fields.tweet(name))
}

/// The members that are always shown, and those that were asked for.
fn shown(mut value: Value, always: &[&str], is_asked: impl Fn(&str) -> bool) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| always.contains(&name.as_str()) || is_asked(name));
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
