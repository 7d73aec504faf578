use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::account::Account;

/// Mastodon's `Status`, for statuses that are made here. Statuses of servers are read by
/// [`crate::read_status`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// The time at which it was written, in ISO 8601.
    pub created_at: Option<String>,
    /// The time of its last edit, in ISO 8601; `None` if it was not edited.
    pub edited_at: Option<String>,
    /// The ID of the post that it replies to.
    pub in_reply_to_id: Option<Cow<'a, str>>,
    /// The ID of that post's author.
    pub in_reply_to_account_id: Option<Cow<'a, str>>,
    /// True if its media are hidden at first.
    pub sensitive: bool,
    /// The warning before its text, if any; plain text.
    pub spoiler_text: Cow<'a, str>,
    /// The name of its visibility.
    pub visibility: Cow<'a, str>,
    /// Its language, ISO 639.
    pub language: Option<Cow<'a, str>>,
    /// Its URI.
    pub uri: Cow<'a, str>,
    /// The address of its page.
    pub url: Cow<'a, str>,
    /// The number of replies.
    pub replies_count: Option<i64>,
    /// The number of boosts.
    pub reblogs_count: Option<i64>,
    /// The number of favourites.
    pub favourites_count: Option<i64>,
    /// The number of quotes.
    pub quotes_count: Option<i64>,
    /// Its text, HTML.
    pub content: Cow<'a, str>,
    /// The post that it boosts.
    #[serde(borrow)]
    pub reblog: Option<Box<Status<'a>>>,
    /// Its author.
    #[serde(borrow)]
    pub account: Option<Account<'a>>,
    /// Its pictures and videos.
    #[serde(borrow)]
    pub media_attachments: Vec<MediaAttachment<'a>>,
    /// The accounts that it mentions.
    pub mentions: Vec<Mention<'a>>,
    /// Its hashtags.
    pub tags: Vec<Tag<'a>>,
    /// Its custom emojis.
    #[serde(borrow)]
    pub emojis: Vec<&'a RawValue>,
    /// The preview of a page that it links to.
    #[serde(borrow)]
    pub card: Option<&'a RawValue>,
    /// Its poll.
    #[serde(borrow)]
    pub poll: Option<&'a RawValue>,
    /// The post of X from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub x: Option<&'a RawValue>,
    /// The post of Twitter from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub twitter: Option<&'a RawValue>,
}

/// Mastodon's `MediaAttachment`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MediaAttachment<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// `image`, `gifv`, `video`, `audio` or `unknown`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Its address.
    pub url: Option<Cow<'a, str>>,
    /// The address of a smaller picture of it.
    pub preview_url: Option<Cow<'a, str>>,
    /// Its address at its original server.
    pub remote_url: Option<Cow<'a, str>>,
    /// Its description in words.
    pub description: Option<Cow<'a, str>>,
    /// A blurred picture of it, as a BlurHash.
    pub blurhash: Option<Cow<'a, str>>,
    /// Its sizes.
    pub meta: MediaMeta,
    /// The medium of X from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub x: Option<&'a RawValue>,
    /// The medium of Twitter from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub twitter: Option<&'a RawValue>,
}

/// The sizes of a picture or video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaMeta {
    /// Its own size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<MediaSize>,
}

/// A size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaSize {
    /// Its width.
    pub width: i64,
    /// Its height.
    pub height: i64,
}

/// Mastodon's `Status::Mention`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention<'a> {
    /// The account's ID.
    pub id: Cow<'a, str>,
    /// Its name on its own server.
    pub username: Cow<'a, str>,
    /// `name`, or `name@host`.
    pub acct: Cow<'a, str>,
    /// The address of its page.
    pub url: Cow<'a, str>,
}

/// Mastodon's `Status::Tag`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag<'a> {
    /// The hashtag, without its sign.
    pub name: Cow<'a, str>,
    /// The address of its page.
    pub url: Cow<'a, str>,
}
