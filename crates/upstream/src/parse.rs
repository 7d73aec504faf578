//! Answers' bodies: from JSON to posts.
//!
//! Strict on what completeness rests on (the list, the IDs). Every post keeps
//! its JSON, so nothing that is not understood is lost.

use std::fmt;

use driftline_core::{
    answer::{Failure, Listed},
    post::Post,
    upstream_id::UpstreamId,
};
use driftline_mastodon::{Notification, RawObject, StatusError, read_parsed, read_status};
use serde::{
    Deserializer as _,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Timeline, bad_item::BadItem, body, failure};

/// What a page of a timeline lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Items {
    /// Its posts, in its order.
    pub listed: Vec<Listed>,
    /// The positions of invalid posts, in order.
    pub passed: Vec<UpstreamId>,
}

/// Reads a page of a timeline.
///
/// # Errors
/// A [`Failure`] without an address if the body is not a list of posts that each
/// have an ID: `Truncated`, `NotJson`, `ErrorBody`, `BadJson` or `BadId`.
pub fn page(body: &[u8], timeline: &Timeline) -> Result<Items, Failure> {
    let body = body::json(body)?;
    if !body.starts_with(b"[") {
        return Err(body::not_what_was_asked(body, "a list of posts"));
    }
    let mut failure = None;
    let reader = ItemReader {
        body,
        timeline,
        failure: &mut failure,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let items = json
        .deserialize_seq(reader)
        .and_then(|items| json.end().map(|()| items));
    items.map_err(|error| failure.unwrap_or_else(|| body::unreadable(body, &error)))
}

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
            None => BadItem::from(error).failure("the post"),
        }
    })
}

/// Reads a list item by item, so that a list of millions of nothings is left
/// at the first.
struct ItemReader<'t> {
    body: &'t [u8],
    timeline: &'t Timeline,
    failure: &'t mut Option<Failure>,
}

impl<'de> Visitor<'de> for ItemReader<'_> {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of posts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items, A::Error> {
        let mut found = Items::default();
        let mut number = 0_usize;
        loop {
            number += 1;
            let item = match self.timeline {
                Timeline::Mentions => items.next_element()?.map(mention),
                _ => items.next_element()?.map(|status| self.post(&status)),
            };
            match item {
                Some(Ok(Item::Post(post))) => found.listed.push(*post),
                Some(Ok(Item::Other(position))) => found.passed.push(position),
                Some(Err(bad)) => {
                    *self.failure = Some(bad.failure(&format!("item {number} of the page")));
                    return Err(A::Error::custom("a bad item"));
                }
                None => return Ok(found),
            }
        }
    }
}

impl ItemReader<'_> {
    /// A status, which is parsed once: only its members are left as text.
    fn post(&self, status: &RawObject<'_>) -> Result<Item, BadItem> {
        let json = status.json_in(self.body).unwrap_or(b"{}");
        let json = str::from_utf8(json).map_err(serde_json::Error::custom)?;
        let post = read_parsed(status, json)?;
        Ok(Item::post(post.id.clone(), post))
    }
}

enum Item {
    Post(Box<Listed>),
    /// The position of an invalid post.
    Other(UpstreamId),
}

impl Item {
    fn post(position: UpstreamId, post: Post) -> Item {
        Item::Post(Box::new(Listed { position, post }))
    }
}

fn mention(json: &RawValue) -> Result<Item, BadItem> {
    let notification = Notification::read(json)?;
    // Servers that do not know `types[]` list every kind; a mention whose post
    // is gone lists none.
    let is_mention = notification.kind.is_none_or(|kind| kind == "mention");
    Ok(match notification.status {
        Some(status) if is_mention => Item::post(notification.id, read_status(status)?),
        _ => Item::Other(notification.id),
    })
}

#[cfg(test)]
mod tests;
