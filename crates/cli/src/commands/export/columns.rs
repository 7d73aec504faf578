//! The columns of tables: what people ask for first, and the whole post as JSON at the end.

use driftline_core::post::Visibility;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::Record;

/// A column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Whether a row may have no value.
    pub is_optional: bool,
}

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Moments, to the ms, in UTC.
    Time,
    /// True or false.
    Bool,
    /// Text.
    Text,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// None.
    Null,
    /// A whole number, or Unix ms.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String),
}

/// The columns of posts and of changes, in their order.
pub const COLUMNS: [Column; 31] = [
    required("event", Kind::Text),
    required("source", Kind::Text),
    required("arrival", Kind::Int),
    required("usn", Kind::Int),
    required("id", Kind::Text),
    required("post_id", Kind::Text),
    required("upstream_id", Kind::Text),
    optional("uri", Kind::Text),
    optional("url", Kind::Text),
    required("visibility", Kind::Text),
    required("arrived_at", Kind::Time),
    required("fetched_at", Kind::Time),
    optional("created_at", Kind::Time),
    optional("edited_at", Kind::Time),
    optional("deleted_at", Kind::Time),
    optional("left_at", Kind::Time),
    optional("author", Kind::Text),
    optional("author_name", Kind::Text),
    optional("author_url", Kind::Text),
    optional("language", Kind::Text),
    optional("content", Kind::Text),
    optional("spoiler_text", Kind::Text),
    optional("sensitive", Kind::Bool),
    optional("in_reply_to_id", Kind::Text),
    optional("boost_of", Kind::Text),
    optional("replies", Kind::Int),
    optional("boosts", Kind::Int),
    optional("favourites", Kind::Int),
    optional("tags", Kind::Text),
    optional("media", Kind::Text),
    optional("status", Kind::Text),
];

impl Column {
    /// Whether its values come from the post as its server wrote it.
    pub fn is_of_status(&self) -> bool {
        place(self.name) >= place(FIRST_OF_STATUS)
    }
}

/// The place of a column; that after the last if there is none of that name.
pub fn place(name: &str) -> usize {
    let found = COLUMNS.iter().position(|column| column.name == name);
    found.unwrap_or(COLUMNS.len())
}

/// From here on columns come from the status.
const FIRST_OF_STATUS: &str = "author";

const fn required(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        is_optional: false,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        is_optional: true,
    }
}

/// A row, in the order of [`COLUMNS`].
pub fn row(record: &Record) -> [Value; COLUMNS.len()] {
    let post = &record.post;
    let status = post.status.as_deref();
    let shown: StatusParts = status
        .and_then(|status| serde_json::from_str(status.get()).ok())
        .unwrap_or_default();
    let author = shown.account.unwrap_or_default();
    let tags = shown.tags.into_iter().flatten().filter_map(|tag| tag.name);
    let media = shown.media_attachments.into_iter().flatten();
    let media = media.filter_map(|media| media.url.or(media.remote_url));
    [
        text(record.event.name()),
        text(&record.source),
        Value::Int(post.arrival),
        Value::Int(post.usn),
        text(post.id.to_string()),
        text(post.post_id.to_string()),
        text(&post.upstream_id),
        maybe(post.uri.clone()),
        maybe(post.url.clone()),
        text(visibility(post.visibility)),
        Value::Int(post.arrived_at_ms),
        Value::Int(post.fetched_at_ms),
        int(post.created_at_ms),
        int(post.edited_at_ms),
        int(post.deleted_at_ms),
        int(post.left_at_ms),
        maybe(author.acct),
        maybe(author.display_name),
        maybe(author.url),
        maybe(shown.language),
        maybe(shown.content),
        maybe(shown.spoiler_text),
        shown.sensitive.map_or(Value::Null, Value::Bool),
        maybe(shown.in_reply_to_id.map(Id::into_text)),
        maybe(
            shown
                .reblog
                .and_then(|boosted| boosted.id)
                .map(Id::into_text),
        ),
        int(shown.replies_count),
        int(shown.reblogs_count),
        int(shown.favourites_count),
        list(tags),
        list(media),
        maybe(status.map(|status| RawValue::get(status).to_owned())),
    ]
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn maybe(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::Text)
}

fn int(number: Option<i64>) -> Value {
    number.map_or(Value::Null, Value::Int)
}

/// A list of JSON; none if it is empty.
fn list(items: impl Iterator<Item = String>) -> Value {
    let items: Vec<String> = items.collect();
    match items.is_empty() {
        true => Value::Null,
        false => maybe(serde_json::to_string(&items).ok()),
    }
}

fn visibility(visibility: Visibility) -> String {
    let name = serde_json::to_value(visibility).ok();
    name.and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// What tables show of a status; a server may leave out anything, or send `null`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct StatusParts {
    account: Option<AuthorParts>,
    language: Option<String>,
    content: Option<String>,
    spoiler_text: Option<String>,
    sensitive: Option<bool>,
    in_reply_to_id: Option<Id>,
    reblog: Option<Boosted>,
    replies_count: Option<i64>,
    reblogs_count: Option<i64>,
    favourites_count: Option<i64>,
    tags: Option<Vec<Tag>>,
    media_attachments: Option<Vec<Media>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AuthorParts {
    acct: Option<String>,
    display_name: Option<String>,
    url: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Boosted {
    id: Option<Id>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tag {
    name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Media {
    url: Option<String>,
    remote_url: Option<String>,
}

/// An ID, which some servers send as a number.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// As text.
    Text(String),
    /// As a number.
    Number(u64),
}

impl Id {
    /// As text.
    pub fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}
