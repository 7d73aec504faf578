//! Statuses of servers, as they are passed on: what Mastodon documents of a post, and nothing that
//! may concern the account with whose token it was read.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    account::{AccountNames, NO_ACCOUNT, write_account},
    copied::{Copied, Kind, copy, write_list},
    object_writer::ObjectWriter,
    raw_object::RawObject,
};

/// Copies what a status of the upstream at `origin` shows: its text, media, counts, mentions, tags
/// and poll. `local_account` finds the local ID of an account; without one the upstream's is written.
pub fn copy_status<I: Serialize>(
    object: &mut ObjectWriter<'_>,
    status: &RawObject<'_>,
    origin: &str,
    local_account: impl Fn(&str) -> Option<I>,
) {
    copy(object, status, COPIED_OF_EDIT);
    copy(object, status, COPIED);
    let mentions = status.objects("mentions");
    write_list(object.key("mentions"), mentions, |object, mention| {
        let upstream_id = mention.id("id").unwrap_or(Cow::Borrowed(NO_ACCOUNT));
        match local_account(&upstream_id) {
            Some(id) => object.value("id", &id),
            None => object.value("id", &upstream_id),
        }
        let account = AccountNames::of(mention, origin);
        object.value("username", &account.username);
        object.value("acct", &account.acct);
        object.value("url", &mention.text("url").unwrap_or_default());
    });
    let tags = status.objects("tags");
    write_list(object.key("tags"), tags, |object, tag| {
        copy(object, tag, COPIED_OF_TAG);
    });
    match status.get("poll").and_then(RawObject::of) {
        Some(poll) => {
            let mut poll_object = ObjectWriter::open(object.key("poll"));
            if let Some(id) = poll.id("id") {
                poll_object.value("id", &id);
            }
            copy(&mut poll_object, &poll, COPIED_OF_POLL);
            poll_object.close();
        }
        None => object.json("poll", "null"),
    }
}

/// Writes the entity `StatusEdit` of a status's version at the upstream at `origin`. `created_at` is
/// when the version was written, ISO 8601; `account_id` is its author's local ID, if there is one.
pub fn write_status_edit(
    out: &mut Vec<u8>,
    version: &RawObject<'_>,
    created_at: &str,
    account_id: Option<&str>,
    origin: &str,
) {
    let account = version.object("account");
    let mut object = ObjectWriter::open(out);
    object.value("created_at", created_at);
    write_account(object.key("account"), &account, account_id, origin);
    copy(&mut object, version, COPIED_OF_EDIT);
    if let Some(poll) = version.get("poll").and_then(RawObject::of) {
        let mut poll_object = ObjectWriter::open(object.key("poll"));
        copy(&mut poll_object, &poll, COPIED_OF_EDITED_POLL);
        poll_object.close();
    }
    object.close();
}

/// The members that an edit may change.
const COPIED_OF_EDIT: &[Copied] = &[
    Copied::always("content", Kind::Text, "\"\""),
    Copied::always("sensitive", Kind::Bool, "false"),
    Copied::always("spoiler_text", Kind::Text, "\"\""),
    Copied::always("media_attachments", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
];

const COPIED: &[Copied] = &[
    Copied::always("reblogs_count", Kind::Whole, "0"),
    Copied::always("favourites_count", Kind::Whole, "0"),
    Copied::always("replies_count", Kind::Whole, "0"),
    Copied::always("card", Kind::Object, "null"),
    Copied::always("language", Kind::Text, "null"),
    Copied::optional("application", Kind::Object),
];

const COPIED_OF_TAG: &[Copied] = &[
    Copied::always("name", Kind::Text, "\"\""),
    Copied::always("url", Kind::Text, "\"\""),
];

/// Without `voted` and `own_votes`, which concern the token's account.
const COPIED_OF_POLL: &[Copied] = &[
    Copied::always("expires_at", Kind::Text, "null"),
    Copied::always("expired", Kind::Bool, "false"),
    Copied::always("multiple", Kind::Bool, "false"),
    Copied::always("votes_count", Kind::Whole, "0"),
    Copied::always("voters_count", Kind::Whole, "null"),
    Copied::always("options", Kind::List, "[]"),
    Copied::always("emojis", Kind::List, "[]"),
];

const COPIED_OF_EDITED_POLL: &[Copied] = &[Copied::always("options", Kind::List, "[]")];
