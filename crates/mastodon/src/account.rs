use std::borrow::Cow;

use crate::{
    copied::{Copied, Kind, copy},
    object_writer::ObjectWriter,
    raw_object::RawObject,
};

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
