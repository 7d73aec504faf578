//! Copies of servers' posts.

use std::borrow::Cow;

use driftline_core::post::Visibility;
use serde_json::value::RawValue;

use crate::{
    account::{AccountName, AccountNames},
    copied::{Copied, Copier, Form, Kind},
    object_writer::ObjectWriter,
    raw_object::RawObject,
    references::MAX_DEPTH,
    template::{AccountForm, PostName, Referent, Template},
    time::parse_time_ms,
    viewer::Part,
    web_address::{harmless_uri, web_address},
};

/// The store's data of a post, which replace those in its JSON.
#[derive(Debug, Clone)]
pub struct StatusHead<'a> {
    /// The local ID of the post at this place.
    pub id: u64,
    /// The local ID by which its viewer knows it.
    pub public_id: u64,
    /// Its author's local ID, if it has an author.
    pub account: Option<u64>,
    /// The time at which it was written, in Unix ms.
    pub created_at_ms: i64,
    /// The time of its last edit, in Unix ms.
    pub edited_at_ms: Option<i64>,
    /// Its visibility.
    pub visibility: Visibility,
    /// Its ID at the upstream.
    pub upstream_id: &'a str,
    /// Its URI.
    pub uri: Option<&'a str>,
    /// The address of its page.
    pub url: Option<&'a str>,
}

/// True if the post's JSON is visible to everyone.
pub fn is_for_anyone(status: &RawObject<'_>) -> bool {
    matches!(
        visibility(status),
        Visibility::Public | Visibility::Unlisted
    )
}

/// True if a post's JSON has media of its own. A boost has none, because they belong to the boosted
/// post.
pub fn has_media(status: &str) -> bool {
    RawObject::parse(status).is_ok_and(|status| !status.list("media_attachments").is_empty())
}

fn visibility(status: &RawObject<'_>) -> Visibility {
    Visibility::named_or_narrowest(&status.text("visibility").unwrap_or_default())
}

impl Copier<'_> {
    /// Copies a post with all data from its server, and with every member that Mastodon documents.
    pub fn status(&self, out: &mut Template, status: &RawObject<'_>, head: &StatusHead<'_>) {
        let account = match head.account {
            Some(id) => AccountName::Local(id.to_string()),
            None => AccountName::Upstream(Cow::Borrowed("")),
        };
        let url = head.url.map(Cow::Borrowed).and_then(web_address);
        let head = Head {
            id: PostName::Local(head.id),
            overlay: PostName::Local(head.public_id),
            account,
            created_at: time(status, "created_at", Some(head.created_at_ms)).unwrap_or_default(),
            edited_at: time(status, "edited_at", head.edited_at_ms),
            visibility: head.visibility,
            uri: self.uri(head.uri, url.as_deref(), head.upstream_id),
            url,
            boosts: true,
        };
        self.with_head(out, status, &head, MAX_DEPTH);
    }

    /// Copies a post within another one; writes `null` if it is not visible to everyone.
    pub(crate) fn nested_status(&self, out: &mut Template, status: &RawObject<'_>, depth: usize) {
        if !is_for_anyone(status) {
            return out.json("null");
        }
        let upstream_id = status.id("id").unwrap_or_default();
        let (uri, url) = (status.text("uri"), status.text("url").and_then(web_address));
        let account = status.object("account").id("id").unwrap_or_default();
        let name = PostName::Upstream(upstream_id.clone().into_owned());
        let head = Head {
            id: name.clone(),
            overlay: name,
            account: AccountName::Upstream(account),
            created_at: status.text("created_at").unwrap_or(Cow::Borrowed(EPOCH)),
            edited_at: status.text("edited_at"),
            visibility: visibility(status),
            uri: self.uri(uri.as_deref(), url.as_deref(), &upstream_id),
            url,
            boosts: false,
        };
        self.with_head(out, status, &head, depth);
    }

    /// Copies a version of a post as Mastodon's `StatusEdit`. `created_at_ms` is the time at which
    /// the post was written, and `account` its author's local ID, if it has an author.
    pub fn status_edit(
        &self,
        out: &mut Template,
        version: &RawObject<'_>,
        created_at_ms: i64,
        account: Option<u64>,
    ) {
        let account = match account {
            Some(id) => AccountName::Local(id.to_string()),
            None => AccountName::Upstream(Cow::Borrowed("")),
        };
        let mut edit = ObjectWriter::open(out);
        let written_at = version
            .text("edited_at")
            .or_else(|| version.text("created_at"))
            .or_else(|| time(version, "created_at", Some(created_at_ms)));
        edit.value("created_at", &written_at);
        let author = version.object("account");
        self.account(edit.key("account"), &author, &account, MAX_DEPTH);
        for copied in COPIED_OF_EDIT {
            self.edited(&mut edit, version, copied);
        }
        if let Some(poll) = version.get("poll").and_then(RawObject::from_value) {
            let mut poll_object = ObjectWriter::open(edit.key("poll"));
            for copied in COPIED_OF_EDITED_POLL {
                self.edited(&mut poll_object, &poll, copied);
            }
            poll_object.close();
        }
        edit.close();
    }

    fn edited(&self, object: &mut ObjectWriter<'_>, version: &RawObject<'_>, copied: &Copied) {
        let value = version.get(copied.key).filter(|value| copied.fits(value));
        let out = object.key(copied.key);
        match value {
            Some(value) => self.value(out, None, (copied.key, value), MAX_DEPTH),
            None => out.json(copied.otherwise),
        }
    }

    fn with_head(&self, out: &mut Template, status: &RawObject<'_>, head: &Head<'_>, depth: usize) {
        let write = |out: &mut Template, made: &'static str| match made {
            "id" => match &head.id {
                PostName::Local(id) => out.value(&id.to_string()),
                PostName::Upstream(id) => out.id(Referent::Post, id),
            },
            "created_at" => out.value(&head.created_at),
            "edited_at" => out.value(&head.edited_at),
            "visibility" => out.value(head.visibility.name()),
            "uri" => out.value(&head.uri),
            "url" => out.value(&head.url),
            "account" => self.account(out, &status.object("account"), &head.account, depth),
            "mentions" => self.mentions(out, status, depth),
            "tags" => {
                let form = Form {
                    made: &[],
                    copied: COPIED_OF_TAG,
                };
                self.objects(out, Part::Tag, status.objects("tags"), &form, depth);
            }
            "poll" => self.poll(out, status.get("poll"), depth),
            _ => match status.get("reblog").filter(|_| head.boosts) {
                Some(reblog) if depth > 0 => self.boosted(out, reblog, depth - 1),
                _ => out.json("null"),
            },
        };
        let form = Form {
            made: MADE,
            copied: COPIED,
        };
        let object = self.formed(out, Part::Status, status, &form, write, depth);
        object.close_with_overlay(head.overlay.clone());
    }

    fn boosted(&self, out: &mut Template, reblog: &RawValue, depth: usize) {
        match RawObject::from_value(reblog) {
            Some(boosted) => self.nested_status(out, &boosted, depth),
            None => out.json("null"),
        }
    }

    fn mentions(&self, out: &mut Template, status: &RawObject<'_>, depth: usize) {
        out.json("[");
        for (index, mention) in status.objects("mentions").enumerate() {
            if index > 0 {
                out.json(",");
            }
            let names = AccountNames::from_account(&mention, self.origin);
            if let Some(name) = self.own_name(&names) {
                out.own_account(AccountForm::Mention, name);
                continue;
            }
            let write = |out: &mut Template, made: &'static str| match made {
                "username" => out.value(&names.username),
                _ => out.value(&names.acct),
            };
            let form = Form {
                made: &["username", "acct"],
                copied: COPIED_OF_MENTION,
            };
            self.formed(out, Part::Account, &mention, &form, write, depth)
                .close();
        }
        out.json("]");
    }

    fn poll(&self, out: &mut Template, poll: Option<&RawValue>, depth: usize) {
        let Some(poll) = poll.and_then(RawObject::from_value) else {
            return out.json("null");
        };
        let form = Form {
            made: &[],
            copied: COPIED_OF_POLL,
        };
        self.formed(out, Part::Poll, &poll, &form, |_, _| {}, depth)
            .close();
    }

    /// A post's URI. Without one, its URL, or the URI that its server would choose.
    fn uri(&self, uri: Option<&str>, url: Option<&str>, upstream_id: &str) -> String {
        match uri.and_then(harmless_uri).or(url) {
            Some(uri) => uri.to_owned(),
            None => format!("{}/statuses/{upstream_id}", self.origin),
        }
    }
}

/// The data that replace a post's own members.
struct Head<'a> {
    id: PostName,
    /// The post that its viewer knows.
    overlay: PostName,
    account: AccountName<'a>,
    created_at: Cow<'a, str>,
    edited_at: Option<Cow<'a, str>>,
    visibility: Visibility,
    uri: String,
    url: Option<Cow<'a, str>>,
    /// True if a boosted post may be shown. Mastodon has no boosts of boosts.
    boosts: bool,
}

/// The time as written by the upstream, in UTC, if it equals the stored one; otherwise the stored
/// one.
fn time<'j>(status: &RawObject<'j>, name: &str, stored_ms: Option<i64>) -> Option<Cow<'j, str>> {
    let stored_ms = stored_ms?;
    let written = status.text(name).filter(|text| text.ends_with('Z'));
    let same = written.filter(|text| parse_time_ms(text) == Some(stored_ms));
    Some(same.unwrap_or_else(|| Cow::Owned(crate::time::iso_8601(stored_ms))))
}

const EPOCH: &str = "1970-01-01T00:00:00.000Z";

/// The members whose values are made here.
const MADE: &[&str] = &[
    "id",
    "created_at",
    "edited_at",
    "visibility",
    "uri",
    "url",
    "account",
    "mentions",
    "tags",
    "poll",
    "reblog",
];

/// The members that an edit may change.
const COPIED_OF_EDIT: &[Copied] = &[
    Copied::new("content", Kind::Text, "\"\""),
    Copied::new("sensitive", Kind::Bool, "false"),
    Copied::new("spoiler_text", Kind::Text, "\"\""),
    Copied::new("media_attachments", Kind::List, "[]"),
    Copied::new("emojis", Kind::List, "[]"),
];

const COPIED: &[Copied] = &[
    Copied::new("content", Kind::Text, "\"\""),
    Copied::new("sensitive", Kind::Bool, "false"),
    Copied::new("spoiler_text", Kind::Text, "\"\""),
    Copied::new("media_attachments", Kind::List, "[]"),
    Copied::new("emojis", Kind::List, "[]"),
    Copied::new("in_reply_to_id", Kind::Id, "null"),
    Copied::new("in_reply_to_account_id", Kind::Id, "null"),
    Copied::new("reblogs_count", Kind::Whole, "0"),
    Copied::new("favourites_count", Kind::Whole, "0"),
    Copied::new("replies_count", Kind::Whole, "0"),
    Copied::new("card", Kind::Object, "null"),
    Copied::new("language", Kind::Text, "null"),
];

const COPIED_OF_MENTION: &[Copied] = &[
    Copied::new("id", Kind::Id, "\"0\""),
    Copied::new("url", Kind::Text, "\"\""),
];

const COPIED_OF_TAG: &[Copied] = &[
    Copied::new("name", Kind::Text, "\"\""),
    Copied::new("url", Kind::Text, "\"\""),
];

const COPIED_OF_POLL: &[Copied] = &[
    Copied::new("expires_at", Kind::Text, "null"),
    Copied::new("expired", Kind::Bool, "false"),
    Copied::new("multiple", Kind::Bool, "false"),
    Copied::new("votes_count", Kind::Whole, "0"),
    Copied::new("voters_count", Kind::Whole, "null"),
    Copied::new("options", Kind::List, "[]"),
    Copied::new("emojis", Kind::List, "[]"),
];

const COPIED_OF_EDITED_POLL: &[Copied] = &[Copied::new("options", Kind::List, "[]")];
