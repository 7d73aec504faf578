//! Tweets as version 2 writes them.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use driftline_core::{post::Counts, upstream_id::UpstreamId};
use driftline_mastodon::RawObject;
use serde_json::value::RawValue;

use crate::{
    bad_item::{BadItem, id},
    tweet::{
        Hashtag, MAX_ENTITIES, MAX_MEDIA, MAX_VERSIONS, Media, Mention, Original, Tweet, User,
        edited_at_ms,
    },
    tweet_html::{Link, Target},
};

/// The rest of an answer besides its tweets: their authors, their media, and
/// the tweets that they refer to.
#[derive(Debug, Default)]
pub(super) struct Includes<'j> {
    users: Index<'j>,
    tweets: Index<'j>,
    media: Index<'j>,
}

type Index<'j> = HashMap<Cow<'j, str>, (&'j RawValue, RawObject<'j>)>;

impl<'j> Includes<'j> {
    /// Reads the member `includes` of an answer.
    pub(super) fn of(includes: &RawObject<'j>) -> Self {
        let index = |list, key| {
            let items = includes
                .list(list)
                .into_iter()
                .filter_map(|raw: &RawValue| {
                    if raw.get().len() > MAX_INCLUDED_BYTES {
                        return None;
                    }
                    let object = RawObject::of(raw)?;
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
    pub(super) fn tweet(&self, raw: &'j RawValue) -> Result<Tweet<'j>, BadItem> {
        self.read(raw, &RawObject::parse(raw.get())?, Boosts::Read)
    }

    fn read(
        &self,
        raw: &'j RawValue,
        tweet: &RawObject<'j>,
        boosts: Boosts,
    ) -> Result<Tweet<'j>, BadItem> {
        let long = tweet.object("note_tweet");
        let text = long.some_text("text");
        let entities = match &text {
            Some(_) => long.object("entities"),
            None => tweet.object("entities"),
        };
        let metrics = tweet.object("public_metrics");
        let author = tweet.text("author_id").unwrap_or_default();
        let versions: Vec<_> = versions(tweet).collect();
        Ok(Tweet {
            id: id(tweet.get("id"))?,
            text: text.or_else(|| tweet.text("text")).unwrap_or_default(),
            addresses: entities
                .objects("urls")
                .take(MAX_ENTITIES)
                .filter_map(|entity| address(&entity))
                .collect(),
            mentions: entities
                .objects("mentions")
                .take(MAX_ENTITIES)
                .filter_map(|entity| mention(&entity))
                .collect(),
            hashtags: entities
                .objects("hashtags")
                .take(MAX_ENTITIES)
                .filter_map(|entity| hashtag(&entity))
                .collect(),
            created_at_ms: tweet.time_ms("created_at"),
            edited_at_ms: edited_at_ms(&versions),
            // X's word for a text whose language it does not know.
            language: tweet.some_text("lang").filter(|lang| lang != "und"),
            is_sensitive: tweet.flag("possibly_sensitive"),
            replied_to: referenced(tweet, "replied_to"),
            replied_user: tweet.text_id("in_reply_to_user_id"),
            user: self.users.get(&author).and_then(user),
            media: self.media(tweet),
            counts: Counts {
                replies: metrics.whole("reply_count"),
                boosts: metrics.whole("retweet_count"),
                favourites: metrics.whole("like_count"),
                quotes: metrics.whole("quote_count"),
                views: metrics.whole("impression_count"),
            },
            boost_of: match boosts {
                Boosts::Read => self.boosted(tweet),
                Boosts::Leave => None,
            },
            original: Original::X(raw),
        })
    }

    /// The tweet that one passes on, if the answer includes it: it leaves out
    /// what this reader may not see.
    fn boosted(&self, tweet: &RawObject<'j>) -> Option<Box<Tweet<'j>>> {
        let id = referenced(tweet, "retweeted")?;
        let (raw, boosted) = self.tweets.get(id.as_str())?;
        self.read(raw, boosted, Boosts::Leave).ok().map(Box::new)
    }

    fn media(&self, tweet: &RawObject<'j>) -> Vec<Media<'j>> {
        let keys = tweet.object("attachments").list("media_keys");
        keys.into_iter()
            .take(MAX_MEDIA)
            .filter_map(|key| id(Some(key)).ok())
            .filter_map(|key| self.media.get(key.as_str()))
            .filter_map(media)
            .collect()
    }
}

/// The IDs of every version of a tweet, with its own. A tweet stands in for
/// its earlier versions, so how many they may be bounds how often it is copied.
pub(super) fn versions<'j>(tweet: &RawObject<'j>) -> impl Iterator<Item = UpstreamId> + use<'j> {
    let versions = tweet.list("edit_history_tweet_ids");
    versions
        .into_iter()
        .take(MAX_VERSIONS)
        .filter_map(|version| id(Some(version)).ok())
}

/// Whether a referenced tweet is read. A tweet passes on no tweet that does
/// so itself; a hostile answer could lead in circles.
#[derive(Clone, Copy)]
enum Boosts {
    Read,
    Leave,
}

fn referenced(tweet: &RawObject<'_>, how: &str) -> Option<UpstreamId> {
    tweet
        .objects("referenced_tweets")
        .find(|reference| reference.text("type").as_deref() == Some(how))?
        .text_id("id")
}

fn user<'j>((raw, user): &(&'j RawValue, RawObject<'j>)) -> Option<User<'j>> {
    let metrics = user.object("public_metrics");
    Some(User {
        id: user.text_id("id")?,
        username: user.text("username").unwrap_or_default(),
        name: user.text("name").unwrap_or_default(),
        description: user.text("description").unwrap_or_default(),
        avatar: user.some_text("profile_image_url"),
        header: user.some_text("profile_banner_url"),
        is_protected: user.flag("protected"),
        created_at_ms: user.time_ms("created_at"),
        followers: metrics.whole("followers_count"),
        following: metrics.whole("following_count"),
        tweets: metrics.whole("tweet_count"),
        original: Original::X(raw),
    })
}

fn media<'j>((raw, media): &(&'j RawValue, RawObject<'j>)) -> Option<Media<'j>> {
    let preview = media.some_text("preview_image_url");
    let film = media
        .objects("variants")
        .filter(|variant| variant.text("content_type").as_deref() == Some("video/mp4"))
        .max_by_key(|variant| variant.whole("bit_rate"))
        .and_then(|variant| variant.some_text("url"));
    let url = media.some_text("url").or(film);
    Some(Media {
        id: media.text_id("media_key")?,
        kind: Media::kind(&media.text("type").unwrap_or_default()),
        preview: preview.or_else(|| url.clone()),
        url,
        description: media.some_text("alt_text"),
        width: media.whole("width"),
        height: media.whole("height"),
        original: Original::X(raw),
    })
}

fn address<'j>(entity: &RawObject<'j>) -> Option<Link<'j>> {
    let written = entity.some_text("url")?;
    let target = if entity.get("media_key").is_some() {
        Target::Nothing
    } else {
        let href = entity.some_text("expanded_url");
        Target::Page {
            shown: entity
                .some_text("display_url")
                .or_else(|| href.clone())
                .unwrap_or_else(|| written.clone()),
            href: href.unwrap_or_else(|| written.clone()),
        }
    };
    Some(Link {
        range: range(entity),
        written,
        target,
    })
}

fn mention<'j>(entity: &RawObject<'j>) -> Option<Mention<'j>> {
    Some(Mention {
        id: entity.text_id("id"),
        username: entity.some_text("username")?,
        range: range(entity),
    })
}

fn hashtag<'j>(entity: &RawObject<'j>) -> Option<Hashtag<'j>> {
    Some(Hashtag {
        name: entity.some_text("tag")?,
        range: range(entity),
    })
}

fn range(entity: &RawObject<'_>) -> Option<Range<usize>> {
    let index = |key| usize::try_from(entity.whole(key)?).ok();
    Some(index("start")?..index("end")?)
}

/// The largest of what an answer includes. One included thing may belong to
/// every tweet of a page, and each post keeps a copy; without a bound an
/// answer of megabytes could turn into gigabytes. X's longest text makes about
/// half of this.
const MAX_INCLUDED_BYTES: usize = 256 * 1024;
