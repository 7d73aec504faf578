//! Answers of version 1.1: from JSON to posts.
//!
//! Strict on what completeness rests on (the list, its IDs), tolerant on the
//! rest, as [`crate::parse`] is for Mastodon.

use driftline_core::{
    answer::{Failure, FailureKind, Finding},
    post::Post,
    upstream_id::UpstreamId,
};
use driftline_mastodon::{RawObject, StatusError};
use serde_json::value::RawValue;

use super::tweet_json::tweet as read;
use crate::{
    body, excerpt, failure,
    items::{Item, Items},
    parse, tweet,
};

/// Reads a page of a timeline.
///
/// # Errors
/// A [`Failure`] without an address.
pub(super) fn page(body: &[u8]) -> Result<Items, Failure> {
    let body = body::json(body)?;
    if !body.starts_with(b"[") {
        return Err(refusal(body, "a list of posts"));
    }
    tweet::items(items(body)?, read, "id_str")
}

/// Reads a tweet.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read_item(item: &[u8]) -> Result<Item, StatusError> {
    let post = read(serde_json::from_slice(item)?)?.post()?;
    Ok((post.id.clone(), Some(post)))
}

/// Reads the answer to a look-up of these IDs, each of them once: a map of
/// IDs to tweets or `null`, which is what was asked for, or the plain list
/// that a server answers with which does not know maps.
///
/// # Errors
/// A [`Failure`] without an address.
pub(super) fn findings(
    body: &[u8],
    asked: Vec<UpstreamId>,
) -> Result<Vec<(UpstreamId, Finding)>, Failure> {
    let body = body::json(body)?;
    let found = if body.starts_with(b"[") {
        items(body)?
    } else {
        let answer = body::object(body)?;
        match answer.get("id").and_then(RawObject::from_value) {
            Some(map) => map
                .members()
                .map(|(_, raw)| raw)
                .filter(|raw| raw.get() != "null")
                .collect(),
            None => {
                let mut failure = refusal(body, "a map of posts");
                if is_about_posts(body) {
                    failure.kind = FailureKind::Forbidden;
                }
                return refused_findings(body, &asked).ok_or(failure);
            }
        }
    };
    let posts = found.into_iter().map(|raw| {
        let post = read(raw).and_then(|tweet| tweet.post());
        post.map_err(|bad| failure::of_item(bad, "a post of the answer"))
    });
    let posts: Vec<Post> = posts.collect::<Result<_, _>>()?;
    Ok(parse::findings(asked, posts))
}

/// What an error says of every post that was looked up; `None`, if it is
/// about something else, or about one post of several without saying which.
pub(super) fn refused_findings(
    body: &[u8],
    asked: &[UpstreamId],
) -> Option<Vec<(UpstreamId, Finding)>> {
    let is_alone = asked.len() == 1;
    let finding = match error(body)?.0? {
        // No post matches: deleted or not for this reader.
        17 => Finding::Missing,
        // No post has the ID. Of several it may be any: each is asked for again.
        144 if is_alone => Finding::Gone,
        144 => Finding::Missing,
        _ if is_about_posts(body) && is_alone => Finding::Hidden,
        _ => return None,
    };
    let findings = asked.iter().map(|id| (id.clone(), finding.clone()));
    Some(findings.collect())
}

/// Whether an error is about a post that was looked up, and not about who
/// asks: its author is suspended, or the reader may not see it.
pub(super) fn is_about_posts(body: &[u8]) -> bool {
    matches!(error(body), Some((Some(63 | 179), _)))
}

/// The kind of failure that an error's code means, whatever the status.
pub(super) fn kind(body: &[u8]) -> Option<FailureKind> {
    match error(body)?.0? {
        88 => Some(FailureKind::Throttled),
        // Wrong signature, token, time or application; suspended, locked; not
        // allowed this.
        32 | 63 | 64 | 89 | 99 | 135 | 179 | 215 | 220 | 326 => Some(FailureKind::Unauthorized),
        17 | 34 | 50 | 144 => Some(FailureKind::NotFound),
        130 | 131 => Some(FailureKind::ServerError),
        _ => None,
    }
}

/// Who a token belongs to: the ID and the name.
///
/// # Errors
/// A [`Failure`] without an address.
pub(super) fn me(body: &[u8]) -> Result<(UpstreamId, String), Failure> {
    let user = body::object(body)?;
    match user.text_id("id_str") {
        Some(id) => Ok((
            id,
            user.text("screen_name").unwrap_or_default().into_owned(),
        )),
        None => Err(refusal(body, "a user with an ID")),
    }
}

fn items(body: &[u8]) -> Result<Vec<&RawValue>, Failure> {
    serde_json::from_slice(body).map_err(|error| body::unreadable(body, &error))
}

/// The failure of a 200 without what was asked for.
fn refusal(body: &[u8], asked: &str) -> Failure {
    let Some((_, said)) = error(body) else {
        return body::not_what_was_asked(body, asked);
    };
    Failure {
        kind: kind(body).unwrap_or(FailureKind::ErrorBody),
        ..body::error_object(&said)
    }
}

/// The first error of an answer: its code and its words.
fn error(body: &[u8]) -> Option<(Option<i64>, String)> {
    let answer: RawObject<'_> = serde_json::from_slice(body).ok()?;
    let error = answer.objects("errors").next()?;
    let said = error.text("message").unwrap_or_default();
    Some((error.whole("code"), excerpt::words(said.as_bytes())))
}

#[cfg(test)]
mod tests;
