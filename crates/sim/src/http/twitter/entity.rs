//! Posts and users in version 1.1's JSON.

use serde_json::{Value, json};

use crate::{
    http::tweet::{ACCOUNTS_MADE_AT_MS, LANGUAGE, Tweet, twitter_date},
    status::SimAuthor,
};

/// A post, with its whole text as `tweet_mode=extended` asks for it.
pub(super) fn tweet(tweet: &Tweet<'_>) -> Value {
    let status = tweet.status;
    let text = tweet.text();
    let mut value = json!({
        "created_at": twitter_date(status.created_at_ms),
        "id": number(status.id.as_str()),
        "id_str": status.id,
        "truncated": false,
        "display_text_range": [0, text.chars().count()],
        "full_text": text,
        "entities": { "hashtags": [], "symbols": [], "user_mentions": [], "urls": [] },
        "source": "<a href=\"https://sim.example\" rel=\"nofollow\">Simulated</a>",
        "in_reply_to_status_id": null,
        "in_reply_to_status_id_str": null,
        "in_reply_to_user_id": null,
        "in_reply_to_user_id_str": null,
        "in_reply_to_screen_name": null,
        "user": user(&status.author),
        "geo": null,
        "coordinates": null,
        "place": null,
        "contributors": null,
        "is_quote_status": false,
        "retweet_count": tweet.counts.boosts.unwrap_or(0),
        "favorite_count": tweet.counts.favourites.unwrap_or(0),
        "favorited": false,
        "retweeted": false,
        "lang": LANGUAGE,
    });
    if let Some(boosted) = &tweet.boosted {
        value["retweeted_status"] = self::tweet(boosted);
    }
    value
}

pub(super) fn user(author: &SimAuthor) -> Value {
    json!({
        "id": author.id,
        "id_str": author.id.to_string(),
        "name": author.display_name(),
        "screen_name": author.name,
        "location": "",
        "description": "",
        "url": null,
        "entities": { "description": { "urls": [] } },
        "protected": false,
        "followers_count": 12,
        "friends_count": 34,
        "listed_count": 7,
        "created_at": twitter_date(ACCOUNTS_MADE_AT_MS),
        "favourites_count": 8,
        "utc_offset": null,
        "time_zone": null,
        "geo_enabled": false,
        "verified": false,
        "statuses_count": 56,
        "lang": null,
        "profile_image_url_https": "https://pbs.twimg.com/profile_images/1/default_normal.png",
        "default_profile": true,
        "default_profile_image": true,
        "following": false,
        "follow_request_sent": false,
        "notifications": false,
    })
}

/// The number that clients must not read: it passes 2^53.
fn number(id: &str) -> Value {
    id.parse::<u64>().map_or(Value::Null, Value::from)
}
