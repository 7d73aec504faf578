//! Tweets as version 1.1 writes them, in its extended form.

use std::ops::Range;

use driftline_core::post::Counts;
use driftline_mastodon::RawObject;
use jiff::fmt::strtime;
use serde_json::value::RawValue;

use crate::{
    bad_item::{BadItem, id},
    excerpt,
    tweet::{
        Hashtag, MAX_ENTITIES, MAX_MEDIA, MAX_VERSIONS, Media, Mention, Original, Tweet, User,
        edited_at_ms,
    },
    tweet_html::{Link, Target},
};

/// Reads a tweet.
///
/// IDs are read from the members `id_str` alone: who writes the number `id`
/// may have rounded it.
pub(super) fn tweet(raw: &RawValue) -> Result<Tweet<'_>, BadItem> {
    read(raw, Boosts::Read)
}

/// Whether a retweeted tweet is read. It retweets none itself; a hostile
/// answer could nest them without end.
#[derive(Clone, Copy)]
enum Boosts {
    Read,
    Leave,
}

fn read(raw: &RawValue, boosts: Boosts) -> Result<Tweet<'_>, BadItem> {
    let tweet = RawObject::parse(raw.get())?;
    let Some(tweet_id) = tweet.text_id("id_str") else {
        return Err(BadItem::Id(tweet.get("id_str").map_or_else(
            || "missing: Twitter's IDs are read from id_str".to_owned(),
            |raw| excerpt::words(raw.get().as_bytes()),
        )));
    };
    let entities = tweet.object("entities");
    let attached = tweet.object("extended_entities");
    let attached = match attached.get("media") {
        Some(_) => attached,
        None => tweet.object("entities"),
    };
    let media: Vec<_> = attached
        .list("media")
        .into_iter()
        .take(MAX_MEDIA)
        .filter_map(media)
        .collect();
    // The address of all media occurs once in the text.
    let of_media = entities
        .objects("media")
        .take(MAX_MEDIA)
        .filter_map(|media| {
            Some(Link {
                range: range(&media),
                written: media.some_text("url")?,
                target: Target::Nothing,
            })
        });
    let versions: Vec<_> = tweet
        .object("edit_history")
        .list("edit_tweet_ids")
        .into_iter()
        .take(MAX_VERSIONS)
        .filter_map(|version| id(Some(version)).ok())
        .collect();
    Ok(Tweet {
        id: tweet_id,
        text: tweet
            .text("full_text")
            .or_else(|| tweet.text("text"))
            .unwrap_or_default(),
        addresses: entities
            .objects("urls")
            .take(MAX_ENTITIES)
            .filter_map(|entity| address(&entity))
            .chain(of_media)
            .collect(),
        mentions: entities
            .objects("user_mentions")
            .take(MAX_ENTITIES)
            .filter_map(|entity| mention(&entity))
            .collect(),
        hashtags: entities
            .objects("hashtags")
            .take(MAX_ENTITIES)
            .filter_map(|entity| hashtag(&entity))
            .collect(),
        created_at_ms: tweet.text("created_at").and_then(|time| time_ms(&time)),
        edited_at_ms: edited_at_ms(&versions),
        language: tweet.some_text("lang").filter(|lang| lang != "und"),
        is_sensitive: tweet.flag("possibly_sensitive"),
        replied_to: tweet.text_id("in_reply_to_status_id_str"),
        replied_user: tweet.text_id("in_reply_to_user_id_str"),
        user: tweet.get("user").and_then(user),
        media,
        counts: Counts {
            replies: tweet.whole("reply_count"),
            boosts: tweet.whole("retweet_count"),
            favourites: tweet.whole("favorite_count"),
            quotes: tweet.whole("quote_count"),
            views: None,
        },
        boost_of: match (boosts, tweet.get("retweeted_status")) {
            (Boosts::Read, Some(boosted)) => Some(Box::new(read(boosted, Boosts::Leave)?)),
            _ => None,
        },
        original: Original::Twitter(raw),
    })
}

fn user(raw: &RawValue) -> Option<User<'_>> {
    let user = RawObject::of(raw)?;
    Some(User {
        id: user.text_id("id_str")?,
        username: user.text("screen_name").unwrap_or_default(),
        name: user.text("name").unwrap_or_default(),
        description: user.text("description").unwrap_or_default(),
        avatar: user.some_text("profile_image_url_https"),
        header: user.some_text("profile_banner_url"),
        is_protected: user.flag("protected"),
        created_at_ms: user.text("created_at").and_then(|time| time_ms(&time)),
        followers: user.whole("followers_count"),
        following: user.whole("friends_count"),
        tweets: user.whole("statuses_count"),
        original: Original::Twitter(raw),
    })
}

fn media(raw: &RawValue) -> Option<Media<'_>> {
    let media = RawObject::of(raw)?;
    let picture = media.some_text("media_url_https");
    let film = media
        .object("video_info")
        .objects("variants")
        .filter(|variant| variant.text("content_type").as_deref() == Some("video/mp4"))
        .max_by_key(|variant| variant.whole("bitrate"))
        .and_then(|variant| variant.some_text("url"));
    let size = media.object("original_info");
    Some(Media {
        id: media.text_id("id_str")?,
        kind: Media::kind(&media.text("type").unwrap_or_default()),
        url: film.or_else(|| picture.clone()),
        preview: picture,
        description: media.some_text("ext_alt_text"),
        width: size.whole("width"),
        height: size.whole("height"),
        original: Original::Twitter(raw),
    })
}

fn address<'j>(entity: &RawObject<'j>) -> Option<Link<'j>> {
    let written = entity.some_text("url")?;
    let href = entity.some_text("expanded_url");
    Some(Link {
        range: range(entity),
        target: Target::Page {
            shown: entity
                .some_text("display_url")
                .or_else(|| href.clone())
                .unwrap_or_else(|| written.clone()),
            href: href.unwrap_or_else(|| written.clone()),
        },
        written,
    })
}

fn mention<'j>(entity: &RawObject<'j>) -> Option<Mention<'j>> {
    Some(Mention {
        id: entity.text_id("id_str"),
        username: entity.some_text("screen_name")?,
        range: range(entity),
    })
}

fn hashtag<'j>(entity: &RawObject<'j>) -> Option<Hashtag<'j>> {
    Some(Hashtag {
        name: entity.some_text("text")?,
        range: range(entity),
    })
}

fn range(entity: &RawObject<'_>) -> Option<Range<usize>> {
    let indices = entity.list("indices");
    let index = |at: usize| usize::try_from(driftline_mastodon::whole(indices.get(at)?)?).ok();
    Some(index(0)?..index(1)?)
}

/// A time as version 1.1 writes it, Unix ms: `Wed Oct 10 20:19:24 +0000 2018`.
fn time_ms(text: &str) -> Option<i64> {
    let time = strtime::parse("%a %b %d %H:%M:%S %z %Y", text).ok()?;
    Some(time.to_timestamp().ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_offset() {
        for (text, ms) in [
            ("Wed Oct 10 20:19:24 +0000 2018", Some(1_539_202_764_000)),
            ("Wed Oct 10 22:19:24 +0200 2018", Some(1_539_202_764_000)),
            ("Wed Oct 10 20:19:24 2018", None),
            ("2018-10-10T20:19:24Z", None),
            ("Wed Foo 10 20:19:24 +0000 2018", None),
            ("", None),
        ] {
            assert_eq!(time_ms(text), ms, "{text}");
        }
    }
}
