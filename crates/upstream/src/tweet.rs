//! A tweet of either API, and the post that is made of it.
//!
//! The rest of the system shows a post's JSON as a Mastodon status, so that is
//! what a tweet turns into; the tweet itself is kept in it, under the name of
//! the API that it came from, and so are its author and its media. Only what
//! concerns the account of the token is kept apart.

use std::{borrow::Cow, ops::Range};

use driftline_core::{
    answer::{AnswerHeaders, Failure, Finding, LookUp, LookUps},
    api::Api,
    post::{Post, Visibility},
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_mastodon::{
    Account, MediaAttachment, MediaMeta, MediaSize, Mention, RawObject, Status, StatusError, Tag,
    iso_8601, read_made_status,
};
use jiff::fmt::strtime;
use serde_json::value::RawValue;

use crate::{
    items::Items,
    tweet_html::{self, Link, Target},
};

/// An object of an answer, and its JSON as it came.
pub(crate) type Whole<'j> = (&'j RawValue, RawObject<'j>);

/// A tweet, and where in the answer its parts are.
#[derive(Debug)]
pub(crate) struct Tweet<'j> {
    pub(crate) dialect: Dialect,
    pub(crate) id: UpstreamId,
    pub(crate) whole: Whole<'j>,
    pub(crate) text: Cow<'j, str>,
    /// What the text names.
    pub(crate) entities: RawObject<'j>,
    /// The object with its counts.
    pub(crate) metrics: RawObject<'j>,
    pub(crate) user: Option<Whole<'j>>,
    pub(crate) media: Vec<Whole<'j>>,
    pub(crate) replied_to: Option<Cow<'j, str>>,
    /// The IDs of its versions, if it was edited.
    pub(crate) versions: Vec<UpstreamId>,
    /// The tweet that it passes on.
    pub(crate) boost_of: Option<Box<Tweet<'j>>>,
}

/// Whether the tweet that one passes on is read. It passes on none itself; a
/// hostile answer could nest them without end, or lead in circles.
#[derive(Clone, Copy)]
pub(crate) enum Boosts {
    Read,
    Leave,
}

/// How an API writes tweets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// X's version 2.
    X,
    /// Twitter's version 1.1.
    Twitter,
}

impl<'j> Tweet<'j> {
    /// The post that it is here.
    pub(crate) fn post(&self) -> Result<Post, StatusError> {
        if !is_id(&self.id) {
            let found = Some(self.id.to_string());
            return Err(StatusError::Id { found });
        }
        let api = match self.dialect {
            Dialect::X => Api::X,
            Dialect::Twitter => Api::Twitter,
        };
        read_made_status(&serde_json::value::to_raw_value(&self.status())?, api)
    }

    fn status(&self) -> Status<'j> {
        let (dialect, (raw, tweet)) = (self.dialect, &self.whole);
        let named = |x, twitter| {
            let entities = self.entities.objects(dialect.name(x, twitter));
            entities.take(MAX_ENTITIES)
        };
        let pages = named("urls", "urls").filter_map(|it| dialect.page(&it));
        // Twitter lists media apart. The address of them all occurs once in the text.
        let media = named("media", "media").take(MAX_MEDIA);
        let media = media.filter_map(|it| dialect.medium(&it));
        let mentions = named("mentions", "user_mentions").filter_map(|it| dialect.mention(&it));
        let (of_mentions, mentions): (Vec<_>, Vec<_>) = mentions.unzip();
        let tags = named("hashtags", "hashtags").filter_map(|it| dialect.tag(&it));
        let (of_tags, tags): (Vec<_>, Vec<_>) = tags.unzip();
        let links: Vec<_> = pages
            .chain(media)
            .chain(of_mentions)
            .chain(of_tags)
            .collect();

        let account = self.user.as_ref().and_then(|user| dialect.account(user));
        let url = match &account {
            Some(account) if !account.username.is_empty() => {
                format!("{}/status/{}", account.url, self.id)
            }
            _ => format!("{SITE}/i/status/{}", self.id),
        };
        // A protected user's tweets are for their followers.
        let visibility = match &account {
            Some(account) if account.locked => Visibility::Private,
            _ => Visibility::Public,
        };
        let reblog = self.boost_of.as_ref().map(|boosted| boosted.status());
        let count = |x, twitter| self.metrics.whole(dialect.name(x, twitter));
        let (x, twitter) = dialect.original(raw);
        Status {
            id: self.id.as_str().to_owned().into(),
            created_at: dialect.created_at(tweet),
            edited_at: edited_at_ms(&self.versions).map(iso_8601),
            in_reply_to_id: self.replied_to.clone(),
            in_reply_to_account_id: tweet
                .some_text(dialect.name("in_reply_to_user_id", "in_reply_to_user_id_str")),
            sensitive: tweet.flag("possibly_sensitive"),
            spoiler_text: "".into(),
            visibility: visibility.name().into(),
            // Their word for a text whose language they do not know.
            language: tweet.some_text("lang").filter(|lang| lang != "und"),
            uri: url.clone().into(),
            url: url.into(),
            replies_count: count("reply_count", "reply_count"),
            reblogs_count: count("retweet_count", "retweet_count"),
            favourites_count: count("like_count", "favorite_count"),
            quotes_count: count("quote_count", "quote_count"),
            // The text of what passes a tweet on is that tweet's, shortened.
            content: match &reblog {
                Some(boosted) => boosted.content.clone(),
                None => tweet_html::html(&self.text, &links).into(),
            },
            reblog: reblog.map(Box::new),
            account,
            media_attachments: self
                .media
                .iter()
                .filter_map(|media| dialect.attachment(media))
                .collect(),
            mentions,
            tags,
            emojis: Vec::new(),
            card: None,
            poll: None,
            x,
            twitter,
        }
    }
}

impl Dialect {
    /// The name of a member in this dialect.
    fn name(self, x: &'static str, twitter: &'static str) -> &'static str {
        match self {
            Self::X => x,
            Self::Twitter => twitter,
        }
    }

    /// The JSON as it came, as the members `x` and `twitter` of an entity.
    fn original(self, raw: &RawValue) -> (Option<&RawValue>, Option<&RawValue>) {
        match self {
            Self::X => (Some(raw), None),
            Self::Twitter => (None, Some(raw)),
        }
    }

    fn created_at(self, of: &RawObject<'_>) -> Option<String> {
        let ms = match self {
            Self::X => of.time_ms("created_at"),
            Self::Twitter => twitter_time_ms(&of.text("created_at")?),
        };
        ms.map(iso_8601)
    }

    fn account<'j>(self, (raw, user): &Whole<'j>) -> Option<Account<'j>> {
        let text = |x, twitter| user.text(self.name(x, twitter)).unwrap_or_default();
        let metrics = match self {
            Self::X => user.object("public_metrics"),
            Self::Twitter => user.clone(),
        };
        let count = |x, twitter| metrics.whole(self.name(x, twitter));
        let username = text("username", "screen_name");
        let avatar = text("profile_image_url", "profile_image_url_https");
        let header = text("profile_banner_url", "profile_banner_url");
        let url = profile(&username);
        let (x, twitter) = self.original(raw);
        Some(Account {
            id: user.some_text(self.name("id", "id_str"))?,
            acct: username.clone(),
            username,
            display_name: text("name", "name"),
            locked: user.flag("protected"),
            bot: false,
            created_at: self.created_at(user),
            note: tweet_html::html(&text("description", "description"), &[]).into(),
            uri: url.clone().into(),
            url: url.into(),
            avatar_static: avatar.clone(),
            avatar,
            header_static: header.clone(),
            header,
            followers_count: count("followers_count", "followers_count"),
            following_count: count("following_count", "friends_count"),
            statuses_count: count("tweet_count", "statuses_count"),
            emojis: Vec::new(),
            fields: Vec::new(),
            x,
            twitter,
        })
    }

    fn attachment<'j>(self, (raw, media): &Whole<'j>) -> Option<MediaAttachment<'j>> {
        let (films, size) = match self {
            Self::X => (media.clone(), media.clone()),
            Self::Twitter => (media.object("video_info"), media.object("original_info")),
        };
        let film = films
            .objects("variants")
            .filter(|variant| variant.text("content_type").as_deref() == Some("video/mp4"))
            .max_by_key(|variant| variant.whole(self.name("bit_rate", "bitrate")))
            .and_then(|variant| variant.some_text("url"));
        let (url, preview_url) = match self {
            Self::X => {
                let url = media.some_text("url").or(film);
                (url.clone(), media.some_text("preview_image_url").or(url))
            }
            Self::Twitter => {
                let picture = media.some_text("media_url_https");
                (film.or_else(|| picture.clone()), picture)
            }
        };
        let kind = match &*media.text("type").unwrap_or_default() {
            "photo" => "image",
            "video" => "video",
            "animated_gif" => "gifv",
            _ => "unknown",
        };
        let size = size.whole("width").zip(size.whole("height"));
        let (x, twitter) = self.original(raw);
        Some(MediaAttachment {
            id: media.some_text(self.name("media_key", "id_str"))?,
            kind: kind.into(),
            remote_url: url.clone(),
            url,
            preview_url,
            description: media.some_text(self.name("alt_text", "ext_alt_text")),
            blurhash: None,
            meta: MediaMeta {
                original: size.map(|(width, height)| MediaSize { width, height }),
            },
            x,
            twitter,
        })
    }

    /// The link to a page, or to a picture or film of X's.
    fn page<'j>(self, entity: &RawObject<'j>) -> Option<Link<'j>> {
        if entity.get("media_key").is_some() {
            return self.medium(entity);
        }
        let written = entity.some_text("url")?;
        let href = entity.some_text("expanded_url");
        let href = href.unwrap_or_else(|| written.clone());
        let shown = entity.some_text("display_url");
        Some(Link {
            range: self.range(entity),
            written,
            target: Target::Page {
                shown: shown.unwrap_or_else(|| href.clone()),
                href,
            },
        })
    }

    fn medium<'j>(self, entity: &RawObject<'j>) -> Option<Link<'j>> {
        Some(Link {
            range: self.range(entity),
            written: entity.some_text("url")?,
            target: Target::Nothing,
        })
    }

    fn mention<'j>(self, entity: &RawObject<'j>) -> Option<(Link<'j>, Mention<'j>)> {
        let username = entity.some_text(self.name("username", "screen_name"))?;
        let url = profile(&username);
        let mention = Mention {
            id: entity
                .some_text(self.name("id", "id_str"))
                .unwrap_or("0".into()),
            username: username.clone(),
            acct: username.clone(),
            url: url.clone().into(),
        };
        Some((self.own(entity, username, url), mention))
    }

    fn tag<'j>(self, entity: &RawObject<'j>) -> Option<(Link<'j>, Tag<'j>)> {
        let name = entity.some_text(self.name("tag", "text"))?;
        let url = format!("{SITE}/hashtag/{}", crate::segment::encoded(&name));
        let tag = Tag {
            name: name.clone(),
            url: url.clone().into(),
        };
        Some((self.own(entity, name, url), tag))
    }

    /// The link to an address of X's.
    fn own<'j>(self, entity: &RawObject<'j>, written: Cow<'j, str>, url: String) -> Link<'j> {
        Link {
            range: self.range(entity),
            written,
            target: Target::Own(url),
        }
    }

    fn range(self, entity: &RawObject<'_>) -> Option<Range<usize>> {
        let (start, end) = match self {
            Self::X => (entity.whole("start")?, entity.whole("end")?),
            Self::Twitter => {
                let indices = entity.list("indices");
                let index = |at: usize| driftline_mastodon::whole(indices.get(at)?);
                (index(0)?, index(1)?)
            }
        };
        Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

/// A page's items, each at its own ID.
///
/// # Errors
/// A [`Failure`] without an address.
pub(crate) fn items<'j>(
    items: Vec<&'j RawValue>,
    read: impl Fn(&'j RawValue) -> Result<Tweet<'j>, StatusError>,
    id: &str,
) -> Result<Items, Failure> {
    let post = |raw: &'j RawValue| {
        let post = read(raw).and_then(|tweet| tweet.post());
        let item = post.map(|post| (post.id.clone(), Some(post)));
        (raw.get().as_bytes(), item)
    };
    Items::sort(
        items.into_iter().map(post),
        |item| {
            let tweet: RawObject<'_> = serde_json::from_slice(item).ok()?;
            tweet.text_id(id).filter(is_id)
        },
        |_| false,
    )
}

/// The IDs of a tweet's versions in a list. A tweet stands in for its earlier
/// versions, so how many they may be bounds how often it is copied.
pub(crate) fn versions(tweet: &RawObject<'_>, list: &str) -> Vec<UpstreamId> {
    let versions = tweet.list(list).into_iter().take(MAX_VERSIONS);
    let ids = versions.filter_map(driftline_mastodon::id);
    ids.map(|id| UpstreamId::new(id.into_owned())).collect()
}

/// A time as version 1.1 writes it, Unix ms: `Wed Oct 10 20:19:24 +0000 2018`.
fn twitter_time_ms(text: &str) -> Option<i64> {
    let time = strtime::parse("%a %b %d %H:%M:%S %z %Y", text).ok()?;
    Some(time.to_timestamp().ok()?.as_millisecond())
}

/// Whether X or Twitter could have made this ID: a number of at most 19 digits.
pub(crate) fn is_id(id: &UpstreamId) -> bool {
    id.as_str().len() <= 19 && IdOrder::Numeric.key(id).is_ok()
}

/// The most posts of one look-up of X's or Twitter's.
pub(crate) const LOOK_UP_LIMIT: usize = 100;

/// What a look-up found that asked for one post.
pub(crate) fn of_one(found: LookUps) -> (LookUp, AnswerHeaders) {
    let LookUps { findings, headers } = found;
    let found = match findings.into_iter().next() {
        Some((_, Finding::Found(post))) => LookUp::Found(post),
        Some((_, Finding::Gone)) => LookUp::Gone,
        Some((_, Finding::Missing | Finding::Hidden)) | None => LookUp::Hidden,
    };
    (found, headers)
}

/// When a tweet's ID was made, Unix ms; `None` for an ID from before
/// Snowflake, which has no time.
fn id_time_ms(id: &UpstreamId) -> Option<i64> {
    let number: i64 = id.as_str().parse().ok()?;
    (number > LAST_SEQUENTIAL_ID).then(|| (number >> 22) + SNOWFLAKE_EPOCH_MS)
}

/// When a tweet was last edited, Unix ms, by the IDs of its versions, which
/// are in no documented order: each edit is a tweet with an ID of its
/// own, made when it was edited.
fn edited_at_ms(versions: &[UpstreamId]) -> Option<i64> {
    let times: Vec<_> = versions.iter().filter_map(id_time_ms).collect();
    let (oldest, newest) = (times.iter().min()?, times.iter().max()?);
    (oldest < newest).then_some(*newest)
}

fn profile(username: &str) -> String {
    format!("{SITE}/{}", crate::segment::encoded(username))
}

/// The most of each kind of link that is read of a tweet; more are some attack.
const MAX_ENTITIES: usize = 500;
/// The most pictures and films of a tweet; X allows 4.
pub(crate) const MAX_MEDIA: usize = 16;
/// The most versions of a tweet that are read of it; X allows 6.
const MAX_VERSIONS: usize = 16;

/// Where people read tweets, whichever server the API is asked at.
const SITE: &str = "https://x.com";
/// The largest ID of Twitter's that was counted, not made of a time (2010).
const LAST_SEQUENTIAL_ID: i64 = 30_000_000_000;
/// The zero of the time in X's IDs, Unix ms.
const SNOWFLAKE_EPOCH_MS: i64 = 1_288_834_974_657;

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(versions: &[&str]) -> Option<i64> {
        let versions: Vec<_> = versions.iter().map(|id| UpstreamId::from(*id)).collect();
        edited_at_ms(&versions)
    }

    #[test]
    fn an_id_holds_its_time_unless_it_is_sequential() {
        let time = |id: &str| id_time_ms(&id.into());
        assert_eq!(time("1050118621198921728"), Some(1_539_202_764_211));
        for id in ["20", "29700859247", "9223372036854775808", "x", "-1", ""] {
            assert_eq!(time(id), None, "{id}");
        }
    }

    #[test]
    fn the_newest_version_dates_the_edit_of_a_tweet() {
        let (first, second) = ("1979500000000000000", "1980000000000000001");
        assert_eq!(edited(&[]), None);
        assert_eq!(edited(&[first]), None);
        assert_eq!(edited(&[first, first]), None);
        let newest = Some(1_760_903_761_278);
        assert_eq!(edited(&[first, second]), newest);
        assert_eq!(edited(&[second, first, "x"]), newest);
    }

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
            assert_eq!(twitter_time_ms(text), ms, "{text}");
        }
    }
}
