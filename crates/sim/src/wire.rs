//! Mastodon's JSON.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::status::{SimAuthor, Status};

/// The entity `Status`, with every key that is not optional.
pub(crate) fn status_json(status: &Status) -> Value {
    json!({
        "id": status.id,
        "created_at": iso_8601(status.created_at_ms, 3),
        "in_reply_to_id": null,
        "in_reply_to_account_id": null,
        "sensitive": false,
        "spoiler_text": "",
        "visibility": status.visibility.name(),
        "language": "en",
        "uri": status.uri(),
        "url": status.url(),
        "replies_count": status.replies,
        "reblogs_count": status.boosts,
        "favourites_count": status.favourites,
        "edited_at": status.edited_at_ms.map(|ms| iso_8601(ms, 3)),
        "content": status.content,
        "reblog": status.boost_of.as_deref().map(status_json),
        "account": account_json(&status.author),
        "media_attachments": [],
        "mentions": [],
        "tags": [],
        "emojis": [],
        "card": null,
        "poll": null,
        "favourited": false,
        "reblogged": false,
        "muted": false,
        "bookmarked": false,
        "filtered": [],
    })
}

/// The entity `StatusEdit`.
pub(crate) fn status_edit_json(version: &Status) -> Value {
    let created_at_ms = version.edited_at_ms.unwrap_or(version.created_at_ms);
    json!({
        "content": version.content,
        "spoiler_text": "",
        "sensitive": false,
        "created_at": iso_8601(created_at_ms, 3),
        "account": account_json(&version.author),
        "media_attachments": [],
        "emojis": [],
    })
}

/// The entity `Account`.
pub(crate) fn account_json(author: &SimAuthor) -> Value {
    let host = author.host();
    let picture = |kind| format!("https://{host}/{kind}/missing.png");
    json!({
        "id": author.id.to_string(),
        "username": author.name,
        "acct": author.acct(),
        "display_name": author.display_name(),
        "locked": false,
        "bot": false,
        "discoverable": true,
        "indexable": false,
        "group": false,
        "created_at": "2022-11-05T00:00:00.000Z",
        "note": "",
        "url": author.url(),
        "uri": author.uri(),
        "avatar": picture("avatars"),
        "avatar_static": picture("avatars"),
        "header": picture("headers"),
        "header_static": picture("headers"),
        "followers_count": 12,
        "following_count": 34,
        "statuses_count": 56,
        "last_status_at": null,
        "hide_collections": false,
        "noindex": false,
        "emojis": [],
        "roles": [],
        "fields": [],
    })
}

/// ISO 8601 in UTC with this many digits of the second's fraction.
pub(crate) fn iso_8601(unix_ms: i64, digits: usize) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.digits$}")
}
