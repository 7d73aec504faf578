//! Tweets as version 1.1 writes them, in its extended form.

use driftline_mastodon::{RawObject, StatusError};
use serde_json::value::RawValue;

use crate::tweet::{Boosts, Dialect, MAX_MEDIA, Tweet, versions};

/// Reads a tweet.
///
/// IDs are read from the members `id_str` alone: who writes the number `id`
/// may have rounded it.
pub(super) fn tweet(raw: &RawValue) -> Result<Tweet<'_>, StatusError> {
    read(raw, Boosts::Read)
}

fn read(raw: &RawValue, boosts: Boosts) -> Result<Tweet<'_>, StatusError> {
    let tweet = RawObject::parse(raw.get())?;
    let Some(id) = tweet.text_id("id_str") else {
        let found = tweet.get("id_str").map_or(NO_ID, RawValue::get);
        let found = Some(found.to_owned());
        return Err(StatusError::Id { found });
    };
    let whole = |raw| Some((raw, RawObject::from_value(raw)?));
    let entities = tweet.object("entities");
    let extended = tweet.object("extended_entities");
    let attached = match extended.get("media") {
        Some(_) => &extended,
        None => &entities,
    };
    let media = attached.list("media").into_iter().take(MAX_MEDIA);
    let text = tweet.text("full_text").or_else(|| tweet.text("text"));
    Ok(Tweet {
        dialect: Dialect::Twitter,
        id,
        text: text.unwrap_or_default(),
        media: media.filter_map(whole).collect(),
        entities,
        metrics: tweet.clone(),
        user: tweet.get("user").and_then(whole),
        replied_to: tweet.some_text("in_reply_to_status_id_str"),
        versions: versions(&tweet.object("edit_history"), "edit_tweet_ids"),
        boost_of: match (boosts, tweet.get("retweeted_status")) {
            (Boosts::Read, Some(boosted)) => Some(Box::new(read(boosted, Boosts::Leave)?)),
            _ => None,
        },
        whole: (raw, tweet),
    })
}

const NO_ID: &str = "missing: Twitter's IDs are read from id_str";
