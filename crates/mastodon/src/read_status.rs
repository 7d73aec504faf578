//! The conversion of statuses to posts.
//!
//! It is strict about the IDs, on which completeness depends, and tolerant about all else. Servers
//! omit fields, send `null`, or send another type.

use std::borrow::Cow;

use driftline_core::{
    api::Api,
    edit_history::ListedVersion,
    post::{Author, Counts, Post, PostHashes, References, Visibility},
    upstream_id::{MAX_ID_BYTES, UpstreamId},
};
use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::{
    post_hashes::{self, Boosts},
    raw_object::{RawObject, is_object, written_id},
    references::references,
    repeated_keys::{TooDeep, without_repeats},
    searchable_text::{own_text, text_of_boost},
    viewer,
};

/// The reason why JSON is not a post.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The JSON is not an object.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The JSON has no usable ID.
    #[error("no usable ID; IDs are texts or whole numbers of at most {MAX_ID_BYTES} bytes")]
    Id {
        /// The JSON of the ID member, as written by the server.
        found: Option<String>,
    },
    /// The JSON is nested too deep.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
}

/// Reads a post.
///
/// # Errors
/// [`StatusError`] if the post, or the post that it boosts, is not an object with an ID, or is
/// nested too deep.
pub fn read_status(json: &RawValue) -> Result<Post, StatusError> {
    if !is_object(json) {
        return Err(serde_json::Error::custom("it is not an object").into());
    }
    read_parsed(&RawObject::parse(json.get())?, json.get())
}

/// [`read_status`] for a status that was made from a post of another API. It contains that post as
/// a whole, whose IDs are not references.
///
/// # Errors
/// The same as those of [`read_status`].
pub fn read_made_status(json: &RawValue, api: Api) -> Result<Post, StatusError> {
    read(&RawObject::parse(json.get())?, json.get(), api)
}

/// Reads a post that is already parsed from the given JSON: see [`read_status`].
///
/// # Errors
/// [`StatusError`] if the post, or the post that it boosts, has no usable ID, or is nested too
/// deep.
pub fn read_parsed(status: &RawObject<'_>, json: &str) -> Result<Post, StatusError> {
    read(status, json, Api::Mastodon)
}

fn read(status: &RawObject<'_>, json: &str, api: Api) -> Result<Post, StatusError> {
    match without_repeats(json)? {
        Some(json) => read_whole(&RawObject::parse(&json)?, &json, api),
        None => read_whole(status, json, api),
    }
}

fn read_whole(status: &RawObject<'_>, json: &str, api: Api) -> Result<Post, StatusError> {
    Ok(Post {
        references: references(status, api),
        ..of_object(status, json, Boosts::Read)?
    })
}

/// A required ID, as written, for the bounds of requests.
///
/// # Errors
/// [`StatusError::Id`] if it is neither a text nor a whole number, or is too long.
pub fn required_id(value: Option<&RawValue>) -> Result<UpstreamId, StatusError> {
    let read = value.and_then(written_id);
    let read = read.filter(|id| id.len() <= MAX_ID_BYTES);
    read.map(|id| UpstreamId::new(id.into_owned()))
        .ok_or_else(|| StatusError::Id {
            found: value.map(|value| value.get().to_owned()),
        })
}

/// The post that a status replies to.
fn reply_to(status: &RawObject<'_>) -> Option<UpstreamId> {
    let id = status.id("in_reply_to_id")?;
    (id.len() <= MAX_ID_BYTES).then(|| UpstreamId::new(id.into_owned()))
}

fn of_object(status: &RawObject<'_>, json: &str, boosts: Boosts) -> Result<Post, StatusError> {
    let id = required_id(status.get("id"))?.stable();
    let boost_of = match (boosts, status.get("reblog")) {
        (Boosts::Read, Some(reblog)) if is_object(reblog) => {
            let boosted = RawObject::parse(reblog.get())?;
            Some(Box::new(of_object(&boosted, reblog.get(), Boosts::Leave)?))
        }
        _ => None,
    };
    let (raw, viewer) = match viewer::split_status(status) {
        Some(split) => (split.status, Some(split.viewer)),
        None => (json.to_owned(), None),
    };
    let searchable = match &boost_of {
        Some(boosted) => text_of_boost(boosted.text.clone(), status),
        None => own_text(status),
    };
    let text = |name| status.text(name).map(Cow::into_owned);
    let visibility = status.text("visibility").unwrap_or_default();
    let mut post = Post {
        id,
        uri: text("uri"),
        url: text("url"),
        created_at_ms: status.time_ms("created_at"),
        edited_at_ms: status.time_ms("edited_at"),
        visibility: Visibility::named_or_narrowest(&visibility),
        author: author(status.get("account")),
        boost_of,
        reply_to: reply_to(status),
        references: References::default(),
        counts: Counts {
            replies: status.whole("replies_count"),
            boosts: status.whole("reblogs_count"),
            favourites: status.whole("favourites_count"),
            quotes: status.whole("quotes_count"),
            // Mastodon's statuses have no views. Statuses that are made from posts of X have them.
            views: status
                .object("x")
                .object("public_metrics")
                .whole("impression_count"),
        },
        hashes: PostHashes::default(),
        text: searchable,
        raw,
        viewer,
    };
    post.hashes = post_hashes::of_status(&post, Some(status));
    Ok(post)
}

/// Reads a version from a post's edit history (Mastodon's `StatusEdit`), without the parts that
/// concern its reader. `None` if it is not an object with a time, or is nested too deep.
pub fn read_version(json: &RawValue) -> Option<ListedVersion> {
    let whole = without_repeats(json.get()).ok()?;
    let raw = viewer::without(whole.unwrap_or_else(|| json.get().to_owned()));
    let created_at_ms = RawObject::parse(&raw).ok()?.time_ms("created_at")?;
    Some(ListedVersion { created_at_ms, raw })
}

/// Reads an account from a search or a look-up of its name. `None` if it has no name, or no ID that
/// can be stored.
pub fn read_account(account: &RawValue) -> Option<Author> {
    let account = author(Some(account));
    (!account.id.as_str().is_empty() && !account.acct.is_empty()).then_some(account)
}

/// The author. If the server omits it, or its ID is too long, the author has an empty ID, because a
/// post without an author is still a post.
fn author(account: Option<&RawValue>) -> Author {
    let members = account.and_then(RawObject::from_value);
    let raw = match (&members, account) {
        (Some(members), Some(account)) => viewer::without_in_account(members, account.get()),
        _ => "{}".to_owned(),
    };
    let account = members.unwrap_or_default();
    let id = account.id("id").filter(|id| id.len() <= MAX_ID_BYTES);
    Author {
        id: UpstreamId::new(id.unwrap_or_default().into_owned()),
        acct: account.text("acct").unwrap_or_default().into_owned(),
        display_name: account
            .text("display_name")
            .unwrap_or_default()
            .into_owned(),
        url: account.text("url").map(Cow::into_owned),
        uri: account.text("uri").map(Cow::into_owned),
        raw,
    }
}
