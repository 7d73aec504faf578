//! Answers' bodies: from JSON to posts.
//!
//! Strict on what completeness rests on (the list, the IDs). Every post keeps
//! its JSON, so nothing that is not understood is lost.

use std::{collections::HashMap, fmt};

use driftline_core::{
    answer::{Failure, Finding, Listed},
    post::Post,
    upstream_id::UpstreamId,
};
use driftline_mastodon::{Notification, RawObject, StatusError, read_parsed, read_status};
use serde::{
    Deserializer as _,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Timeline, body, failure};

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
        let post = found.remove(&id).map(Box::new);
        (id, post.map_or(Finding::Missing, Finding::Found))
    });
    findings.collect()
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
                Some(Ok((position, Some(post)))) => found.listed.push(Listed { position, post }),
                Some(Ok((position, None))) => found.passed.push(position),
                Some(Err(bad)) => {
                    let failure = failure::of_item(bad, &format!("item {number} of the page"));
                    *self.failure = Some(failure);
                    return Err(A::Error::custom("a bad item"));
                }
                None => return Ok(found),
            }
        }
    }
}

/// The position of an item, and its post if it is one.
type Item = (UpstreamId, Option<Post>);

impl ItemReader<'_> {
    /// A status, which is parsed once: only its members are left as text.
    fn post(&self, status: &RawObject<'_>) -> Result<Item, StatusError> {
        let json = status.json_in(self.body).unwrap_or(b"{}");
        let json = str::from_utf8(json).map_err(serde_json::Error::custom)?;
        let post = read_parsed(status, json)?;
        Ok((post.id.clone(), Some(post)))
    }
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
