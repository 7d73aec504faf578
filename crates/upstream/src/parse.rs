//! Answers' bodies: from JSON to posts.
//!
//! Strict on what completeness rests on (the list, the IDs), item by item: one that
//! cannot be read is kept as it came. Every post keeps its JSON, so nothing that is
//! not understood is lost.

use std::{collections::HashMap, fmt};

use driftline_core::{
    answer::{Failure, Finding, Thread},
    edit_history::{EarlierVersion, earlier_versions},
    post::{Author, Post},
    upstream_id::UpstreamId,
};
use driftline_mastodon::{
    Notification, RawObject, StatusError, read_account, read_parsed, read_status, read_version,
    required_id,
};
use serde::{
    Deserializer as _,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

pub use crate::items::Items;
use crate::{
    Timeline, body, failure,
    items::{self, Item},
};

/// Reads a page of a timeline.
///
/// # Errors
/// A [`Failure`] without an address if the body is not a list of items, or none of its items has an
/// ID and they are many or no posts: `Truncated`, `NotJson`, `ErrorBody`, `BadJson` or `BadId`.
pub fn page(body: &[u8], timeline: &Timeline) -> Result<Items, Failure> {
    let body = body::json(body)?;
    if !body.starts_with(b"[") {
        return Err(body::not_what_was_asked(body, "a list of posts"));
    }
    let items = items::split(body)?.into_iter();
    Items::sort(
        items.map(|item| (item, read_item(item, timeline))),
        position_of,
        may_be_post,
    )
}

/// Whether an item that cannot be read and has no position may be a post nevertheless, and not an
/// error or a thing of another kind.
fn may_be_post(item: &[u8]) -> bool {
    item == b"null" || item.starts_with(b"{") && failure::said_by_object(item).is_none()
}

/// Reads an item of a page of a timeline: its position, and its post if it is one.
///
/// # Errors
/// Why it cannot be read.
pub fn read_item(
    item: &[u8],
    timeline: &Timeline,
) -> Result<(UpstreamId, Option<Post>), StatusError> {
    let json = str::from_utf8(item).map_err(serde_json::Error::custom)?;
    if *timeline == Timeline::Mentions {
        return mention(serde_json::from_str(json)?);
    }
    // A status is parsed once: only its members are left as text.
    let status = RawObject::parse(json)?;
    let position = required_id(status.get("id"))?;
    Ok((position, Some(read_parsed(&status, json)?)))
}

/// The position of an item that cannot be read, if its beginning says it.
pub(crate) fn position_of(item: &[u8]) -> Option<UpstreamId> {
    let text = String::from_utf8_lossy(item).replace(char::is_control, " ");
    let mut position = None;
    let members = IdVisitor(&mut position);
    // What it finds before it fails counts.
    let _ = serde_json::Deserializer::from_str(&text).deserialize_map(members);
    position
}

struct IdVisitor<'p>(&'p mut Option<UpstreamId>);

impl<'de> Visitor<'de> for IdVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some((key, value)) = members.next_entry::<&'de RawValue, &'de RawValue>()? {
            if key.get() == "\"id\"" {
                *self.0 = required_id(Some(value)).ok();
            }
        }
        Ok(())
    }
}

/// Reads the thread of a post, at most [`MAX_THREAD`] posts of each kind. What no post can be read from is
/// counted.
///
/// # Errors
/// A [`Failure`] without an address if the body is not an object with both lists.
pub fn thread(body: &[u8]) -> Result<Thread, Failure> {
    let json = body::json(body)?;
    let object = body::object(json)?;
    let has_lists = |name: &&str| {
        object
            .get(name)
            .is_some_and(|list| list.get().starts_with('['))
    };
    if !["ancestors", "descendants"].iter().all(has_lists) {
        return Err(body::not_what_was_asked(json, "a thread"));
    }
    let mut thread = Thread::default();
    let mut read = |name: &str| -> Vec<Post> {
        let items = object.list(name).into_iter().take(MAX_THREAD);
        let read = items.filter_map(|item| match read_status(item) {
            Ok(post) => Some(post),
            Err(_) => {
                thread.unreadable += 1;
                None
            }
        });
        read.collect()
    };
    let (ancestors, descendants) = (read("ancestors"), read("descendants"));
    thread.ancestors = ancestors;
    thread.descendants = descendants;
    Ok(thread)
}

/// The most posts above one, and below it, that are taken. Mastodon shows as many to log-ins.
pub const MAX_THREAD: usize = 4_096;

/// Reads the earlier versions of a post from its edit history, without those that cannot be read.
///
/// # Errors
/// A [`Failure`] without an address if the body is not a list.
pub fn history(body: &[u8]) -> Result<Vec<EarlierVersion>, Failure> {
    let json = body::json(body)?;
    if !json.starts_with(b"[") {
        return Err(body::not_what_was_asked(json, "the versions of a post"));
    }
    let items: Vec<&RawValue> =
        serde_json::from_slice(json).map_err(|error| body::unreadable(json, &error))?;
    let listed = items.into_iter().filter_map(read_version);
    Ok(earlier_versions(listed.collect()))
}

/// Reads the posts that a search found, without those that cannot be read.
///
/// # Errors
/// A [`Failure`] without an address if the body is not an object with a list of posts.
pub fn found(body: &[u8]) -> Result<Vec<Post>, Failure> {
    let json = body::json(body)?;
    let object = body::object(json)?;
    if object
        .get("statuses")
        .is_none_or(|list| !list.get().starts_with('['))
    {
        return Err(body::not_what_was_asked(json, "what a search found"));
    }
    let found = object.list("statuses").into_iter().take(MAX_FOUND);
    Ok(found.filter_map(|item| read_status(item).ok()).collect())
}

/// Reads the accounts that a search found, without those that cannot be read.
///
/// # Errors
/// A [`Failure`] without an address if the body is not an object with a list of accounts.
pub fn found_accounts(body: &[u8]) -> Result<Vec<Author>, Failure> {
    let json = body::json(body)?;
    let object = body::object(json)?;
    if object
        .get("accounts")
        .is_none_or(|list| !list.get().starts_with('['))
    {
        return Err(body::not_what_was_asked(json, "what a search found"));
    }
    let found = object.list("accounts").into_iter().take(MAX_FOUND);
    Ok(found.filter_map(read_account).collect())
}

/// Reads one account.
///
/// # Errors
/// A [`Failure`] without an address if the body is not an account with an ID and a name.
pub fn account(body: &[u8]) -> Result<Author, Failure> {
    let body = body::json(body)?;
    if !body.starts_with(b"{") {
        return Err(body::not_what_was_asked(body, "an account"));
    }
    let raw: &RawValue =
        serde_json::from_slice(body).map_err(|error| body::unreadable(body, &error))?;
    read_account(raw).ok_or_else(|| body::not_what_was_asked(body, "an account"))
}

/// The most posts or accounts of a search that are read. Mastodon finds as many.
pub const MAX_FOUND: usize = 40;

/// Reads one post.
///
/// # Errors
/// A [`Failure`] without an address if the body is not a post with an ID.
pub fn post(body: &[u8]) -> Result<Post, Failure> {
    let body = body::json(body)?;
    if !body.starts_with(b"{") {
        return Err(body::not_what_was_asked(body, "a post"));
    }
    let raw: &RawValue =
        serde_json::from_slice(body).map_err(|error| body::unreadable(body, &error))?;
    read_status(raw).map_err(|error| {
        let said = match error {
            StatusError::Id { found: None } => failure::said_by_object(body),
            _ => None,
        };
        match said {
            Some(said) => body::error_object(&said),
            None => failure::of_item(error, "the post"),
        }
    })
}

/// What was found of each post that was asked for, among these; of repeated ones the first counts.
pub(crate) fn findings(
    asked: Vec<UpstreamId>,
    posts: impl IntoIterator<Item = Post>,
) -> Vec<(UpstreamId, Finding)> {
    let mut found = HashMap::with_capacity(asked.len());
    for post in posts {
        found.entry(post.id.clone()).or_insert(post);
    }
    let findings = asked.into_iter().map(|id| {
        let post = found.remove(&id.stable()).map(Box::new);
        (id, post.map_or(Finding::Missing, Finding::Found))
    });
    findings.collect()
}

fn mention(json: &RawValue) -> Result<Item, StatusError> {
    let notification = Notification::read(json)?;
    // Servers that do not know `types[]` list every kind; a mention whose post
    // is gone lists none.
    let is_mention = notification.kind.is_none_or(|kind| kind == "mention");
    let status = notification.status.filter(|_| is_mention);
    Ok((notification.id, status.map(read_status).transpose()?))
}

#[cfg(test)]
mod tests;
