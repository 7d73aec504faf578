use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    copied::{Copied, Kind, copy},
    object_writer::ObjectWriter,
    raw_object::RawObject,
};

/// Mastodon's `Account`, as one is made. Accounts of servers are passed on by [`write_account`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// Its name on its own server.
    pub username: Cow<'a, str>,
    /// `name`, or `name@host`.
    pub acct: Cow<'a, str>,
    /// The name that people read.
    pub display_name: Cow<'a, str>,
    /// Whether it approves its followers.
    pub locked: bool,
    /// Whether it is a program.
    pub bot: bool,
    /// When it was made, ISO 8601.
    pub created_at: Option<String>,
    /// What it says of itself, HTML.
    pub note: Cow<'a, str>,
    /// Its address for people.
    pub url: Cow<'a, str>,
    /// Its name across servers.
    pub uri: Cow<'a, str>,
    /// The address of its picture.
    pub avatar: Cow<'a, str>,
    /// The same, not moving.
    pub avatar_static: Cow<'a, str>,
    /// The address of the picture above its profile.
    pub header: Cow<'a, str>,
    /// The same, not moving.
    pub header_static: Cow<'a, str>,
    /// How many follow it.
    pub followers_count: Option<i64>,
    /// How many it follows.
    pub following_count: Option<i64>,
    /// How many posts it has written.
    pub statuses_count: Option<i64>,
    /// Its custom emojis.
    #[serde(borrow)]
    pub emojis: Vec<&'a RawValue>,
    /// The rows of its profile.
    #[serde(borrow)]
    pub fields: Vec<&'a RawValue>,
    /// The user of X that it is.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub x: Option<&'a RawValue>,
    /// The user of Twitter that it is.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub twitter: Option<&'a RawValue>,
}

/// Writes an account of the upstream at `origin`, under this ID; `None` for an author that the
/// upstream leaves out.
pub fn write_account(out: &mut Vec<u8>, account: &RawObject<'_>, id: Option<&str>, origin: &str) {
    let names = AccountNames::of(account, origin);
    let mut object = ObjectWriter::open(out);
    object.value("id", id.unwrap_or(NO_ACCOUNT));
    object.value("username", &names.username);
    object.value("acct", &names.acct);
    match account.some_text("url") {
        Some(url) => object.value("url", &url),
        None => object.value("url", &format!("{origin}/@{}", names.username)),
    }
    for (key, still_key) in [("avatar", "avatar_static"), ("header", "header_static")] {
        let picture = |key| account.some_text(key);
        let moving = picture(key)
            .or_else(|| picture(still_key))
            .unwrap_or_else(|| Cow::Owned(format!("{origin}/{key}s/original/missing.png")));
        object.value(key, &moving);
        object.value(still_key, &picture(still_key).unwrap_or(moving));
    }
    copy(&mut object, account, COPIED);
    object.close();
}

/// The names of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountNames<'j> {
    /// Its name on its own server.
    pub(crate) username: Cow<'j, str>,
    /// Always with the host: every account is remote here.
    pub(crate) acct: Cow<'j, str>,
}

impl<'j> AccountNames<'j> {
    /// The names of an account, or of a mention of one.
    pub(crate) fn of(account: &RawObject<'j>, origin: &str) -> Self {
        let text = |key| account.some_text(key);
        let username = text("username").or_else(|| {
            let acct = text("acct")?;
            let end = acct.find('@').unwrap_or(acct.len());
            Some(Cow::Owned(acct[..end].to_owned()))
        });
        let username = username.unwrap_or_default();
        let acct = text("acct").unwrap_or_else(|| username.clone());
        let acct = if acct.is_empty() || acct.contains('@') {
            acct
        } else {
            Cow::Owned(format!("{acct}@{}", host(origin)))
        };
        Self { username, acct }
    }
}

fn host(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

/// The ID of an author that the upstream leaves out.
pub(crate) const NO_ACCOUNT: &str = "0";

const COPIED: &[Copied] = &[
    Copied::always("display_name", Kind::Text, "\"\""),
    Copied::always("note", Kind::Text, "\"\""),
    Copied::always("locked", Kind::Bool, "false"),
    Copied::always("fields", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
    Copied::always("bot", Kind::Bool, "false"),
    Copied::always("group", Kind::Bool, "false"),
    Copied::always("discoverable", Kind::Bool, "null"),
    Copied::always("created_at", Kind::Text, "\"1970-01-01T00:00:00.000Z\""),
    Copied::always("last_status_at", Kind::Text, "null"),
    Copied::always("statuses_count", Kind::Whole, "0"),
    Copied::always("followers_count", Kind::Whole, "0"),
    Copied::always("following_count", Kind::Whole, "0"),
    Copied::optional("uri", Kind::Text),
    Copied::optional("indexable", Kind::Bool),
    Copied::optional("noindex", Kind::Bool),
    Copied::optional("hide_collections", Kind::Bool),
    Copied::optional("suspended", Kind::Bool),
    Copied::optional("limited", Kind::Bool),
    Copied::optional("roles", Kind::List),
];
