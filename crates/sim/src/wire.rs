//! Mastodon's JSON.

use driftline_core::upstream_id::UpstreamId;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::status::{SimAuthor, Status};

/// The entity `Status`, with every key that is not optional.
pub(crate) fn status_json(status: &Status) -> String {
    to_json(&StatusEntity::of(status))
}

/// The entity `Account`.
pub(crate) fn account_json(author: &SimAuthor) -> String {
    to_json(&AccountEntity::of(author))
}

/// A page's body.
pub(crate) fn page_json(statuses: &[Status]) -> String {
    to_json(&statuses.iter().map(StatusEntity::of).collect::<Vec<_>>())
}

/// ISO 8601 in UTC with this many digits of the second's fraction.
pub(crate) fn iso_8601(unix_ms: i64, digits: usize) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.digits$}")
}

#[derive(Serialize)]
struct StatusEntity<'a> {
    id: &'a UpstreamId,
    created_at: String,
    in_reply_to_id: Option<String>,
    in_reply_to_account_id: Option<String>,
    sensitive: bool,
    spoiler_text: &'static str,
    visibility: &'static str,
    language: &'static str,
    uri: String,
    url: String,
    replies_count: i64,
    reblogs_count: i64,
    favourites_count: i64,
    edited_at: Option<String>,
    content: &'a str,
    reblog: Option<Box<StatusEntity<'a>>>,
    account: AccountEntity<'a>,
    media_attachments: [(); 0],
    mentions: [(); 0],
    tags: [(); 0],
    emojis: [(); 0],
    card: Option<Value>,
    poll: Option<Value>,
    favourited: bool,
    reblogged: bool,
    muted: bool,
    bookmarked: bool,
    filtered: [(); 0],
}

impl<'a> StatusEntity<'a> {
    fn of(status: &'a Status) -> Self {
        Self {
            id: &status.id,
            created_at: iso_8601(status.created_at_ms, 3),
            in_reply_to_id: None,
            in_reply_to_account_id: None,
            sensitive: false,
            spoiler_text: "",
            visibility: status.visibility.name(),
            language: "en",
            uri: status.uri(),
            url: status.url(),
            replies_count: status.replies,
            reblogs_count: status.boosts,
            favourites_count: status.favourites,
            edited_at: status.edited_at_ms.map(|ms| iso_8601(ms, 3)),
            content: &status.content,
            reblog: status
                .boost_of
                .as_deref()
                .map(|boosted| Box::new(Self::of(boosted))),
            account: AccountEntity::of(&status.author),
            media_attachments: [],
            mentions: [],
            tags: [],
            emojis: [],
            card: None,
            poll: None,
            favourited: false,
            reblogged: false,
            muted: false,
            bookmarked: false,
            filtered: [],
        }
    }
}

#[derive(Serialize)]
struct AccountEntity<'a> {
    id: String,
    username: &'a str,
    acct: String,
    display_name: String,
    locked: bool,
    bot: bool,
    discoverable: bool,
    indexable: bool,
    group: bool,
    created_at: &'static str,
    note: &'static str,
    url: String,
    uri: String,
    avatar: String,
    avatar_static: String,
    header: String,
    header_static: String,
    followers_count: u32,
    following_count: u32,
    statuses_count: u32,
    last_status_at: Option<String>,
    hide_collections: bool,
    noindex: bool,
    emojis: [(); 0],
    roles: [(); 0],
    fields: [(); 0],
}

impl<'a> AccountEntity<'a> {
    fn of(author: &'a SimAuthor) -> Self {
        let picture = |kind| format!("https://{}/{kind}/missing.png", author.host());
        Self {
            id: author.id.to_string(),
            username: &author.name,
            acct: author.acct(),
            display_name: author.display_name(),
            locked: false,
            bot: false,
            discoverable: true,
            indexable: false,
            group: false,
            created_at: "2022-11-05T00:00:00.000Z",
            note: "",
            url: author.url(),
            uri: format!("https://{}/users/{}", author.host(), author.name),
            avatar: picture("avatars"),
            avatar_static: picture("avatars"),
            header: picture("headers"),
            header_static: picture("headers"),
            followers_count: 12,
            following_count: 34,
            statuses_count: 56,
            last_status_at: None,
            hide_collections: false,
            noindex: false,
            emojis: [],
            roles: [],
            fields: [],
        }
    }
}

/// None of these types holds a map with keys other than text, nor a number
/// that JSON lacks, so writing them cannot fail.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
