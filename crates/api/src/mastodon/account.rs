//! Accounts as Mastodon shows them.

use std::borrow::Cow;

use super::{
    entity::{Copied, Kind, copy},
    members::Members,
    object::Object,
};

/// Writes an account of the upstream at `origin`, under its local ID.
pub(super) fn write(out: &mut Vec<u8>, account: &Members<'_>, id: &str, origin: &str) {
    let names = AccountNames::of(account, origin);
    let mut object = Object::open(out);
    object.value("id", id);
    object.value("username", &names.username);
    object.value("acct", &names.acct);
    match account.text("url").filter(|url| !url.is_empty()) {
        Some(url) => object.value("url", &url),
        None => object.value("url", &format!("{origin}/@{}", names.username)),
    }
    for (key, still_key) in [("avatar", "avatar_static"), ("header", "header_static")] {
        let picture = |key| account.text(key).filter(|url| !url.is_empty());
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
pub(super) struct AccountNames<'j> {
    pub(super) username: Cow<'j, str>,
    /// Always with the host: every account is remote here.
    pub(super) acct: Cow<'j, str>,
}

impl<'j> AccountNames<'j> {
    /// The names of an account, or of a mention of one.
    pub(super) fn of(account: &Members<'j>, origin: &str) -> Self {
        let text = |key| account.text(key).filter(|name| !name.is_empty());
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
