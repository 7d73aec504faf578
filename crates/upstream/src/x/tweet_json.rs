//! Tweets as version 2 writes them.

use std::{borrow::Cow, collections::HashMap};

use driftline_mastodon::{RawObject, StatusError, required_id};
use serde_json::value::RawValue;

use crate::tweet::{Boosts, Dialect, MAX_MEDIA, Tweet, Whole, versions};

/// The rest of an answer besides its tweets: their authors, their media, and
/// the tweets that they refer to.
#[derive(Debug, Default)]
pub(super) struct Includes<'j> {
    users: Index<'j>,
    tweets: Index<'j>,
    media: Index<'j>,
}

type Index<'j> = HashMap<Cow<'j, str>, Whole<'j>>;

impl<'j> Includes<'j> {
    /// Reads the member `includes` of an answer.
    pub(super) fn of(includes: &RawObject<'j>) -> Self {
        let index = |list, key| {
            let items = includes
                .list(list)
                .into_iter()
                .filter(|raw| raw.get().len() <= MAX_INCLUDED_BYTES)
                .filter_map(|raw| {
                    let object = RawObject::from_value(raw)?;
                    Some((object.some_text(key)?, (raw, object)))
                });
            items.collect()
        };
        Self {
            users: index("users", "id"),
            tweets: index("tweets", "id"),
            media: index("media", "media_key"),
        }
    }

    /// Reads a tweet.
    pub(super) fn tweet(&self, raw: &'j RawValue) -> Result<Tweet<'j>, StatusError> {
        self.read((raw, RawObject::parse(raw.get())?), Boosts::Read)
    }

    fn read(&self, whole: Whole<'j>, boosts: Boosts) -> Result<Tweet<'j>, StatusError> {
        let tweet = &whole.1;
        let long = tweet.object("note_tweet");
        let (text, entities) = match long.some_text("text") {
            Some(text) => (text, long.object("entities")),
            None => (
                tweet.text("text").unwrap_or_default(),
                tweet.object("entities"),
            ),
        };
        let author = tweet.text("author_id").unwrap_or_default();
        let media = tweet.object("attachments").list("media_keys").into_iter();
        let media = media
            .take(MAX_MEDIA)
            .filter_map(|key| self.media.get(&driftline_mastodon::id(key)?).cloned());
        Ok(Tweet {
            dialect: Dialect::X,
            id: required_id(tweet.get("id"))?,
            text,
            entities,
            metrics: tweet.object("public_metrics"),
            user: self.users.get(&author).cloned(),
            media: media.collect(),
            replied_to: referenced(tweet, "replied_to"),
            versions: versions(tweet, "edit_history_tweet_ids"),
            boost_of: match boosts {
                Boosts::Read => self.boosted(tweet),
                Boosts::Leave => None,
            },
            whole,
        })
    }

    /// The tweet that one passes on, if the answer includes it: it leaves out
    /// what this reader may not see.
    fn boosted(&self, tweet: &RawObject<'j>) -> Option<Box<Tweet<'j>>> {
        let boosted = self.tweets.get(&referenced(tweet, "retweeted")?)?;
        let boosted = self.read(boosted.clone(), Boosts::Leave);
        boosted.ok().map(Box::new)
    }
}

/// Whether a tweet names what answers include beside it.
pub(super) fn needs_includes(tweet: &RawObject<'_>) -> bool {
    tweet.get("author_id").is_some()
        || !tweet.object("attachments").list("media_keys").is_empty()
        || referenced(tweet, "retweeted").is_some()
}

fn referenced<'j>(tweet: &RawObject<'j>, how: &str) -> Option<Cow<'j, str>> {
    tweet
        .objects("referenced_tweets")
        .find(|reference| reference.text("type").as_deref() == Some(how))?
        .some_text("id")
}

/// The largest of what an answer includes. One included thing may belong to
/// every tweet of a page, and each post keeps a copy; without a bound an
/// answer of megabytes could turn into gigabytes. X's longest text makes about
/// half of this.
const MAX_INCLUDED_BYTES: usize = 256 * 1024;
