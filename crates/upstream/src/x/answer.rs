//! Answers of version 2: from JSON to posts.
//!
//! Strict on what completeness rests on (that there is a list, its IDs),
//! tolerant on the rest, as [`crate::parse`] is for Mastodon.

use std::collections::HashMap;

use driftline_core::{
    answer::{Failure, FailureKind, Finding},
    upstream_id::UpstreamId,
};
use driftline_mastodon::{RawObject, StatusError};
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::tweet_json::{Includes, needs_includes};
use crate::{
    body, excerpt, failure,
    items::{Item, Items},
    tweet::{self, Tweet, is_id},
};

/// A page of a timeline.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TweetPage {
    /// Its items.
    pub(super) items: Items,
    /// Asks for the page after it; `None` at the end.
    pub(super) next: Option<String>,
}

/// Reads a page of a timeline.
///
/// # Errors
/// A [`Failure`] without an address.
pub(super) fn page(body: &[u8]) -> Result<TweetPage, Failure> {
    let answer = body::object(body)?;
    let meta = answer.object("meta");
    let items = match answer.get("data") {
        Some(data) => items(data)?,
        // An empty page has no data, only a count.
        None if meta.whole("result_count") == Some(0) => Vec::new(),
        None => return Err(refusal(&answer, "a page of posts")),
    };
    let includes = Includes::of(&answer.object("includes"));
    let items = tweet::items(items, |raw| includes.tweet(raw), "id")?;
    let next = meta.some_text("next_token").filter(|token| is_token(token));
    Ok(TweetPage {
        items,
        next: next.map(std::borrow::Cow::into_owned),
    })
}

/// Reads a tweet without the rest of its answer.
///
/// # Errors
/// Why it cannot be read: also if it needs the rest, without which it would be a post without its
/// author or what it passes on.
pub(crate) fn read_item(item: &[u8]) -> Result<Item, StatusError> {
    let tweet: &RawValue = serde_json::from_slice(item)?;
    let post = Includes::default().tweet(tweet)?.post()?;
    if needs_includes(&RawObject::parse(tweet.get())?) {
        let reason = "its author, its media and what it refers to came beside it and are not kept";
        return Err(serde_json::Error::custom(reason).into());
    }
    Ok((post.id.clone(), Some(post)))
}

/// Reads the answer to a look-up of these IDs, each of them once.
///
/// An edit is a tweet with an ID of its own. The answer to an ID that was
/// superseded is that version, or a newer one that names it among its earlier
/// ones: it is taken for the post that was asked for, under the ID that was
/// asked for, with the text that it now has.
///
/// # Errors
/// A [`Failure`] without an address, also for an answer that says nothing of any
/// of the IDs: that is no word on whether they exist.
pub(super) fn findings(
    body: &[u8],
    asked: Vec<UpstreamId>,
) -> Result<Vec<(UpstreamId, Finding)>, Failure> {
    let answer = body::object(body)?;
    let errors: HashMap<_, _> = answer
        .objects("errors")
        .filter_map(|error| Some((subject(&error)?, finding_of(&error)?)))
        .collect();
    let items = match answer.get("data") {
        Some(data) => items(data)?,
        None if asked.iter().any(|id| errors.contains_key(id)) => Vec::new(),
        None => return Err(refusal(&answer, "a list of posts")),
    };
    let includes = Includes::of(&answer.object("includes"));
    let mut found = HashMap::with_capacity(asked.len());
    let mut newer = HashMap::new();
    for (index, raw) in items.into_iter().enumerate() {
        let tweet = includes.tweet(raw);
        let item = || format!("item {} of the answer", index + 1);
        let tweet = tweet.map_err(|bad| failure::of_item(bad, &item()))?;
        for version in tweet.versions {
            newer.entry(version).or_insert(raw);
        }
        found.entry(tweet.id).or_insert(raw);
    }
    let finding = |id: UpstreamId| {
        let finding = match found.get(&id).or_else(|| newer.get(&id)) {
            Some(raw) => {
                let tweet = includes.tweet(raw);
                let post = tweet.and_then(|tweet| {
                    let id = id.clone();
                    Tweet { id, ..tweet }.post()
                });
                Finding::Found(Box::new(
                    post.map_err(|bad| failure::of_item(bad, "a post"))?,
                ))
            }
            None => errors.get(&id).cloned().unwrap_or(Finding::Missing),
        };
        Ok((id, finding))
    };
    asked.into_iter().map(finding).collect()
}

/// Who a token belongs to: the ID and the name.
///
/// # Errors
/// A [`Failure`] without an address.
pub(super) fn me(body: &[u8]) -> Result<(UpstreamId, String), Failure> {
    let answer = body::object(body)?;
    let data = answer.object("data");
    let name = data.text("username").unwrap_or_default().into_owned();
    let id = data.text_id("id").filter(is_id);
    id.map(|id| (id, name))
        .ok_or_else(|| refusal(&answer, "a user with an ID"))
}

fn items(data: &RawValue) -> Result<Vec<&RawValue>, Failure> {
    let items: Vec<&RawValue> = serde_json::from_str(data.get()).map_err(|error| {
        Failure::new(
            FailureKind::BadJson,
            format!("the answer's data is not a list of posts ({error})"),
        )
    })?;
    if items.len() > MAX_ITEMS {
        return Err(Failure::new(
            FailureKind::BadJson,
            format!(
                "the answer holds {} posts, and {MAX_ITEMS} is the most that was asked for",
                items.len()
            ),
        ));
    }
    Ok(items)
}

/// The ID that a partial error concerns.
fn subject(error: &RawObject<'_>) -> Option<UpstreamId> {
    let of_tweet = error
        .text("resource_type")
        .is_none_or(|kind| kind == "tweet");
    error
        .text_id("resource_id")
        .or_else(|| error.text_id("value"))
        .filter(|_| of_tweet)
}

/// What a partial error says of its ID; nothing, if it is about something
/// else than whether the post is available.
fn finding_of(error: &RawObject<'_>) -> Option<Finding> {
    match problem(error).as_str() {
        "resource-not-found" => Some(Finding::Gone),
        "not-authorized-for-resource" | "disallowed-resource" | "resource-unavailable" => {
            Some(Finding::Hidden)
        }
        _ => None,
    }
}

/// The kind of a problem: the last segment of its `type`, an address.
fn problem(error: &RawObject<'_>) -> String {
    let address = error.text("type").unwrap_or_default();
    let name = address.rsplit('/').next().unwrap_or_default();
    name.to_owned()
}

/// The failure of a 200 without what was asked for. X answers so where a whole
/// timeline is unavailable.
fn refusal(answer: &RawObject<'_>, asked: &str) -> Failure {
    let Some(error) = answer.objects("errors").next() else {
        return Failure::new(
            FailureKind::BadJson,
            format!("the answer is JSON but not {asked}, and names no error"),
        );
    };
    let kind = match problem(&error).as_str() {
        "resource-not-found" => FailureKind::NotFound,
        "not-authorized-for-resource"
        | "disallowed-resource"
        | "client-forbidden"
        | "unsupported-authentication" => FailureKind::Unauthorized,
        "usage-capped" => FailureKind::Capped,
        _ => FailureKind::ErrorBody,
    };
    let said = ["detail", "title", "message"]
        .into_iter()
        .find_map(|key| error.some_text(key))
        .unwrap_or_default();
    Failure::new(
        kind,
        format!(
            "the answer is an error although its status is 200: “{}”",
            excerpt::words(said.as_bytes())
        ),
    )
}

/// A token comes back in the next request's address.
fn is_token(token: &str) -> bool {
    token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|b| b.is_ascii_graphic())
}

/// The most posts that X answers with, and the most that are asked for.
const MAX_ITEMS: usize = 100;
const MAX_TOKEN_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
