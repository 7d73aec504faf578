use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    copied::{Copied, Copier, Form, Kind},
    raw_object::RawObject,
    references::MAX_DEPTH,
    template::{AccountForm, Referent, Template},
    viewer::Part,
    web_address::web_address,
};

/// Mastodon's `Account`, for accounts that are made here. Accounts of servers are copied with their
/// posts: see [`Copier`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// Its name on its own server.
    pub username: Cow<'a, str>,
    /// `name`, or `name@host`.
    pub acct: Cow<'a, str>,
    /// Its display name.
    pub display_name: Cow<'a, str>,
    /// True if it approves its followers.
    pub locked: bool,
    /// True if it is an automated account.
    pub bot: bool,
    /// The time of its creation, in ISO 8601.
    pub created_at: Option<String>,
    /// Its description of itself, HTML.
    pub note: Cow<'a, str>,
    /// The address of its page.
    pub url: Cow<'a, str>,
    /// Its URI.
    pub uri: Cow<'a, str>,
    /// The address of its picture.
    pub avatar: Cow<'a, str>,
    /// The same picture without animation.
    pub avatar_static: Cow<'a, str>,
    /// The address of the picture at the top of its profile.
    pub header: Cow<'a, str>,
    /// The same picture without animation.
    pub header_static: Cow<'a, str>,
    /// The number of its followers.
    pub followers_count: Option<i64>,
    /// The number of accounts that it follows.
    pub following_count: Option<i64>,
    /// The number of its posts.
    pub statuses_count: Option<i64>,
    /// Its custom emojis.
    #[serde(borrow)]
    pub emojis: Vec<&'a RawValue>,
    /// The rows of its profile.
    #[serde(borrow)]
    pub fields: Vec<&'a RawValue>,
    /// The user of X from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub x: Option<&'a RawValue>,
    /// The user of Twitter from which it was made.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub twitter: Option<&'a RawValue>,
}

impl Copier<'_> {
    /// Copies an account of the upstream that is shown alone, under its local ID.
    pub fn whole_account(&self, out: &mut Template, account: &RawObject<'_>, id: u64) {
        let name = AccountName::Local(id.to_string());
        self.account(out, account, &name, MAX_DEPTH);
    }

    /// Copies an account of the upstream under the given ID, with every member that Mastodon
    /// documents.
    pub(crate) fn account(
        &self,
        out: &mut Template,
        account: &RawObject<'_>,
        id: &AccountName<'_>,
        depth: usize,
    ) {
        let names = AccountNames::from_account(account, self.origin);
        if let Some(name) = self.own_name(&names) {
            return out.own_account(AccountForm::Whole, name);
        }
        let write = |out: &mut Template, made: &'static str| match made {
            "id" => match id {
                AccountName::Local(id) => out.value(id),
                AccountName::Upstream(id) if !id.is_empty() => out.id(Referent::Account, id),
                AccountName::Upstream(_) => out.value(NO_ACCOUNT),
            },
            "username" => out.value(&names.username),
            "acct" => out.value(&names.acct),
            "url" => match account.some_text("url").and_then(web_address) {
                Some(url) => out.value(&url),
                None => out.value(&format!("{}/@{}", self.origin, names.username)),
            },
            _ => out.value(&self.picture(account, made)),
        };
        let form = Form {
            made: MADE,
            copied: COPIED,
        };
        self.formed(out, Part::Account, account, &form, write, depth)
            .close();
    }

    /// The name of an account that is this server's own; `None` for any other account.
    pub(crate) fn own_name<'n>(&self, names: &'n AccountNames<'_>) -> Option<&'n str> {
        let (name, host) = names.acct.rsplit_once('@')?;
        let is_own = host.eq_ignore_ascii_case(self.own_host?);
        is_own.then(|| name.trim_start_matches('@'))
    }

    /// The address of a picture. Each picture also has a form without animation. A missing address
    /// is replaced by that of the other form, or by that of a missing picture.
    fn picture<'j>(&self, account: &RawObject<'j>, key: &str) -> Cow<'j, str> {
        let (moving, other) = match key {
            "avatar" => ("avatar", "avatar_static"),
            "avatar_static" => ("avatar", "avatar"),
            "header" => ("header", "header_static"),
            _ => ("header", "header"),
        };
        let address = |key| account.some_text(key).and_then(web_address);
        let found = address(key).or_else(|| address(other));
        found.unwrap_or_else(|| {
            Cow::Owned(format!("{}/{moving}s/original/missing.png", self.origin))
        })
    }
}

/// The ID of a copied account.
#[derive(Debug, Clone)]
pub(crate) enum AccountName<'a> {
    /// Its local ID, as text.
    Local(String),
    /// Its ID at the upstream; empty for an author that the upstream leaves out.
    Upstream(Cow<'a, str>),
}

/// The names of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountNames<'j> {
    /// Its name on its own server.
    pub(crate) username: Cow<'j, str>,
    /// The name with the host. It always has one, because every account is remote here.
    pub(crate) acct: Cow<'j, str>,
}

impl<'j> AccountNames<'j> {
    /// The names of an account, or of the mention of one.
    pub(crate) fn from_account(account: &RawObject<'j>, origin: &str) -> Self {
        let text = |key| account.some_text(key);
        let username = text("username").or_else(|| {
            let acct = text("acct")?;
            let end = acct.find('@').unwrap_or(acct.len());
            Some(Cow::Owned(acct[..end].to_owned()))
        });
        let username = username.unwrap_or_default();
        let acct = text("acct").unwrap_or_else(|| username.clone());
        let acct = qualified(acct, origin);
        Self { username, acct }
    }
}

/// An `acct` with its host.
pub(crate) fn qualified<'a>(acct: Cow<'a, str>, origin: &str) -> Cow<'a, str> {
    if acct.is_empty() || acct.contains('@') {
        acct
    } else {
        Cow::Owned(format!("{acct}@{}", host(origin)))
    }
}

fn host(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}

/// The ID of an author that the upstream leaves out.
pub(crate) const NO_ACCOUNT: &str = "0";

const MADE: &[&str] = &[
    "id",
    "username",
    "acct",
    "url",
    "avatar",
    "avatar_static",
    "header",
    "header_static",
];

const COPIED: &[Copied] = &[
    Copied::new("display_name", Kind::Text, "\"\""),
    Copied::new("note", Kind::Text, "\"\""),
    Copied::new("locked", Kind::Bool, "false"),
    Copied::new("fields", Kind::List, "[]"),
    Copied::new("emojis", Kind::List, "[]"),
    Copied::new("bot", Kind::Bool, "false"),
    Copied::new("group", Kind::Bool, "false"),
    Copied::new("discoverable", Kind::Bool, "null"),
    Copied::new("created_at", Kind::Text, "\"1970-01-01T00:00:00.000Z\""),
    Copied::new("last_status_at", Kind::Text, "null"),
    Copied::new("statuses_count", Kind::Whole, "0"),
    Copied::new("followers_count", Kind::Whole, "0"),
    Copied::new("following_count", Kind::Whole, "0"),
];
