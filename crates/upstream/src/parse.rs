//! Answers' bodies: from JSON to posts.
//!
//! Strict on what completeness rests on (the list, the IDs), tolerant on the
//! rest: servers leave fields out, send `null`, or send another type. Every
//! post keeps its JSON whole, so nothing that is not understood is lost.

use std::{borrow::Cow, fmt};

use driftline_core::{
    answer::{Failure, Listed},
    post::{Author, Counts, Post, Visibility},
    upstream_id::UpstreamId,
};
use serde::{
    Deserialize, Deserializer as _,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    Timeline, body, failure,
    json::{BadItem, count, id, is_object, text, time_ms},
};

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
    let fields = StatusFields::read(raw).map_err(|error| body::unreadable(body, &error))?;
    if fields.id.is_none()
        && let Some(said) = failure::said_by_object(body)
    {
        return Err(body::error_object(&said));
    }
    fields
        .post(raw, Boosts::Read)
        .map_err(|bad| bad.failure("the post"))
}

/// Reads a list item by item, so that a list of millions of nothings is left
/// at the first.
struct ItemReader<'t> {
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
        while let Some(raw) = items.next_element::<&'de RawValue>()? {
            number += 1;
            match item(raw, self.timeline) {
                Ok(Item::Post(post)) => found.listed.push(*post),
                Ok(Item::Other(position)) => found.passed.push(position),
                Err(bad) => {
                    *self.failure = Some(bad.failure(&format!("item {number} of the page")));
                    return Err(A::Error::custom("a bad item"));
                }
            }
        }
        Ok(found)
    }
}

enum Item {
    Post(Box<Listed>),
    /// The position of an invalid post.
    Other(UpstreamId),
}

fn item(raw: &RawValue, timeline: &Timeline) -> Result<Item, BadItem> {
    let at = |position, post| Item::Post(Box::new(Listed { position, post }));
    if *timeline != Timeline::Mentions {
        let post = StatusFields::read(raw)?.post(raw, Boosts::Read)?;
        return Ok(at(post.id.clone(), post));
    }
    let notification: NotificationFields<'_> = serde_json::from_str(raw.get())?;
    let position = id(notification.id)?;
    // Servers that do not know `types[]` list every kind; a mention whose post
    // is gone lists none.
    let kind = text(notification.kind).unwrap_or(Cow::Borrowed("mention"));
    match notification.status {
        Some(status) if kind == "mention" => {
            let post = StatusFields::read(status)?.post(status, Boosts::Read)?;
            Ok(at(position, post))
        }
        _ => Ok(Item::Other(position)),
    }
}

#[derive(Deserialize)]
struct NotificationFields<'j> {
    #[serde(borrow)]
    id: Option<&'j RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'j RawValue>,
    #[serde(borrow)]
    status: Option<&'j RawValue>,
}

/// Whether a post's boosted post is read. Mastodon boosts no boosts, so one
/// level is enough; a hostile answer could nest them without end.
#[derive(Clone, Copy)]
enum Boosts {
    Read,
    Leave,
}

#[derive(Deserialize)]
struct StatusFields<'j> {
    #[serde(borrow)]
    id: Option<&'j RawValue>,
    #[serde(borrow)]
    uri: Option<&'j RawValue>,
    #[serde(borrow)]
    url: Option<&'j RawValue>,
    #[serde(borrow)]
    created_at: Option<&'j RawValue>,
    #[serde(borrow)]
    edited_at: Option<&'j RawValue>,
    #[serde(borrow)]
    visibility: Option<&'j RawValue>,
    #[serde(borrow)]
    account: Option<&'j RawValue>,
    #[serde(borrow)]
    reblog: Option<&'j RawValue>,
    #[serde(borrow)]
    replies_count: Option<&'j RawValue>,
    #[serde(borrow)]
    reblogs_count: Option<&'j RawValue>,
    #[serde(borrow)]
    favourites_count: Option<&'j RawValue>,
    #[serde(borrow)]
    quotes_count: Option<&'j RawValue>,
}

impl<'j> StatusFields<'j> {
    fn read(raw: &'j RawValue) -> Result<Self, serde_json::Error> {
        if !is_object(raw) {
            return Err(serde_json::Error::custom("it is not an object"));
        }
        serde_json::from_str(raw.get())
    }

    fn post(&self, raw: &RawValue, boosts: Boosts) -> Result<Post, BadItem> {
        let id = id(self.id)?;
        let boost_of = match (boosts, self.reblog) {
            (Boosts::Read, Some(reblog)) if is_object(reblog) => {
                let boosted = StatusFields::read(reblog)?.post(reblog, Boosts::Leave)?;
                Some(Box::new(boosted))
            }
            _ => None,
        };
        Ok(Post {
            id,
            uri: text(self.uri).map(Cow::into_owned),
            url: text(self.url).map(Cow::into_owned),
            created_at_ms: time_ms(self.created_at),
            edited_at_ms: time_ms(self.edited_at),
            visibility: Visibility::named_or_narrowest(&text(self.visibility).unwrap_or_default()),
            author: author(self.account),
            boost_of,
            counts: Counts {
                replies: count(self.replies_count),
                boosts: count(self.reblogs_count),
                favourites: count(self.favourites_count),
                quotes: count(self.quotes_count),
                views: None,
            },
            raw: raw.get().to_owned(),
        })
    }
}

#[derive(Deserialize, Default)]
struct AccountFields<'j> {
    #[serde(borrow)]
    id: Option<&'j RawValue>,
    #[serde(borrow)]
    acct: Option<&'j RawValue>,
    #[serde(borrow)]
    display_name: Option<&'j RawValue>,
    #[serde(borrow)]
    url: Option<&'j RawValue>,
}

/// The author; one that the server leaves out has an empty ID, because a post
/// without an author is still a post.
fn author(raw: Option<&RawValue>) -> Author {
    let raw = raw.filter(|raw| is_object(raw));
    let fields: AccountFields<'_> = raw
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    Author {
        id: id(fields.id).unwrap_or_else(|_| UpstreamId::from("")),
        acct: text(fields.acct).unwrap_or_default().into_owned(),
        display_name: text(fields.display_name).unwrap_or_default().into_owned(),
        url: text(fields.url).map(Cow::into_owned),
        raw: raw.map_or("{}", RawValue::get).to_owned(),
    }
}

#[cfg(test)]
mod tests;
