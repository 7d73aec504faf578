//! A tweet of either API, and the post that is made of it.
//!
//! The rest of the system shows a post's JSON as a Mastodon status, so that is
//! what a tweet turns into; the tweet itself is kept whole in it, under the
//! name of the API that it came from, and so are its author and its media.

use std::borrow::Cow;

use driftline_core::{
    answer::{AnswerHeaders, Finding, Listed, LookUp, LookUps},
    post::{Author, Counts, Post, Visibility},
    upstream_id::{IdOrder, UpstreamId},
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::tweet_html::{self, Link, Target};

/// A tweet with its author, its media and the tweet that it passes on.
#[derive(Debug)]
pub(crate) struct Tweet<'j> {
    pub(crate) id: UpstreamId,
    pub(crate) text: Cow<'j, str>,
    pub(crate) addresses: Vec<Link<'j>>,
    pub(crate) mentions: Vec<Mention<'j>>,
    pub(crate) hashtags: Vec<Hashtag<'j>>,
    pub(crate) created_at_ms: Option<i64>,
    pub(crate) edited_at_ms: Option<i64>,
    pub(crate) language: Option<Cow<'j, str>>,
    pub(crate) is_sensitive: bool,
    pub(crate) replied_to: Option<UpstreamId>,
    pub(crate) replied_user: Option<UpstreamId>,
    pub(crate) user: Option<User<'j>>,
    pub(crate) media: Vec<Media<'j>>,
    pub(crate) counts: Counts,
    pub(crate) boost_of: Option<Box<Tweet<'j>>>,
    pub(crate) original: Original<'j>,
}

/// A user as a tweet shows them.
#[derive(Debug, Clone)]
pub(crate) struct User<'j> {
    pub(crate) id: UpstreamId,
    pub(crate) username: Cow<'j, str>,
    pub(crate) name: Cow<'j, str>,
    pub(crate) description: Cow<'j, str>,
    pub(crate) avatar: Option<Cow<'j, str>>,
    pub(crate) header: Option<Cow<'j, str>>,
    pub(crate) is_protected: bool,
    pub(crate) created_at_ms: Option<i64>,
    pub(crate) followers: Option<i64>,
    pub(crate) following: Option<i64>,
    pub(crate) tweets: Option<i64>,
    pub(crate) original: Original<'j>,
}

/// A user that a text names.
#[derive(Debug)]
pub(crate) struct Mention<'j> {
    pub(crate) id: Option<UpstreamId>,
    pub(crate) username: Cow<'j, str>,
    pub(crate) range: Option<std::ops::Range<usize>>,
}

/// A hashtag, without its sign.
#[derive(Debug)]
pub(crate) struct Hashtag<'j> {
    pub(crate) name: Cow<'j, str>,
    pub(crate) range: Option<std::ops::Range<usize>>,
}

/// A picture or film.
#[derive(Debug, Clone)]
pub(crate) struct Media<'j> {
    pub(crate) id: UpstreamId,
    /// In Mastodon's words.
    pub(crate) kind: &'static str,
    pub(crate) url: Option<Cow<'j, str>>,
    pub(crate) preview: Option<Cow<'j, str>>,
    pub(crate) description: Option<Cow<'j, str>>,
    pub(crate) width: Option<i64>,
    pub(crate) height: Option<i64>,
    pub(crate) original: Original<'j>,
}

impl Media<'_> {
    /// Mastodon's word for X's kinds of media.
    pub(crate) fn kind(of_x: &str) -> &'static str {
        match of_x {
            "photo" => "image",
            "video" => "video",
            "animated_gif" => "gifv",
            _ => "unknown",
        }
    }
}

/// The JSON as it came, under the name of its API.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Original<'j> {
    X(&'j RawValue),
    Twitter(&'j RawValue),
}

impl<'j> Tweet<'j> {
    /// The post that it is here.
    pub(crate) fn post(&self) -> Result<Post, serde_json::Error> {
        let boost_of = match &self.boost_of {
            Some(boosted) => Some(Box::new(boosted.post()?)),
            None => None,
        };
        let status = self.status();
        Ok(Post {
            id: self.id.clone(),
            uri: Some(status.uri.clone()),
            url: Some(status.url.clone()),
            created_at_ms: self.created_at_ms,
            edited_at_ms: self.edited_at_ms,
            visibility: self.visibility(),
            author: self.author(status.account.as_ref())?,
            boost_of,
            counts: self.counts,
            raw: serde_json::to_string(&status)?,
        })
    }

    /// A protected user's tweets are for their followers.
    fn visibility(&self) -> Visibility {
        match &self.user {
            Some(user) if user.is_protected => Visibility::Private,
            _ => Visibility::Public,
        }
    }

    fn author(&self, account: Option<&Account<'_>>) -> Result<Author, serde_json::Error> {
        let Some((user, account)) = self.user.as_ref().zip(account) else {
            return Ok(Author {
                id: UpstreamId::from(""),
                acct: String::new(),
                display_name: String::new(),
                url: None,
                raw: "{}".to_owned(),
            });
        };
        Ok(Author {
            id: user.id.clone(),
            acct: user.username.clone().into_owned(),
            display_name: user.name.clone().into_owned(),
            url: Some(account.url.clone()),
            raw: serde_json::to_string(account)?,
        })
    }

    /// The text of what passes a tweet on is that tweet's, shortened.
    fn content(&self) -> String {
        if let Some(boosted) = &self.boost_of {
            return boosted.content();
        }
        let own = |range: &Option<_>, written: &Cow<'j, str>, target| Link {
            range: Clone::clone(range),
            written: written.clone(),
            target,
        };
        let mentions = self
            .mentions
            .iter()
            .map(|m| own(&m.range, &m.username, Target::Own(profile(&m.username))));
        let hashtags = self
            .hashtags
            .iter()
            .map(|h| own(&h.range, &h.name, Target::Own(hashtag(&h.name))));
        let links: Vec<_> = self
            .addresses
            .iter()
            .cloned()
            .chain(mentions)
            .chain(hashtags)
            .collect();
        tweet_html::html(&self.text, &links)
    }

    fn status(&self) -> Status<'_> {
        let url = match &self.user {
            Some(user) if !user.username.is_empty() => {
                format!("{}/status/{}", profile(&user.username), self.id)
            }
            _ => format!("{SITE}/i/status/{}", self.id),
        };
        Status {
            id: self.id.as_str(),
            created_at: self.created_at_ms.and_then(iso_8601),
            edited_at: self.edited_at_ms.and_then(iso_8601),
            in_reply_to_id: self.replied_to.as_ref().map(UpstreamId::as_str),
            in_reply_to_account_id: self.replied_user.as_ref().map(UpstreamId::as_str),
            sensitive: self.is_sensitive,
            spoiler_text: "",
            visibility: self.visibility().name(),
            language: self.language.as_deref(),
            uri: url.clone(),
            url,
            replies_count: self.counts.replies,
            reblogs_count: self.counts.boosts,
            favourites_count: self.counts.favourites,
            quotes_count: self.counts.quotes,
            content: self.content(),
            reblog: self
                .boost_of
                .as_ref()
                .map(|boosted| Box::new(boosted.status())),
            account: self.user.as_ref().map(Account::of),
            media_attachments: self.media.iter().map(Attachment::of).collect(),
            mentions: self.mentions.iter().map(MentionEntity::of).collect(),
            tags: self.hashtags.iter().map(Tag::of).collect(),
            emojis: [],
            card: None,
            poll: None,
            original: self.original,
        }
    }
}

/// Mastodon's entity `Status`.
#[derive(Serialize)]
struct Status<'t> {
    id: &'t str,
    created_at: Option<String>,
    edited_at: Option<String>,
    in_reply_to_id: Option<&'t str>,
    in_reply_to_account_id: Option<&'t str>,
    sensitive: bool,
    spoiler_text: &'static str,
    visibility: &'static str,
    language: Option<&'t str>,
    uri: String,
    url: String,
    replies_count: Option<i64>,
    reblogs_count: Option<i64>,
    favourites_count: Option<i64>,
    quotes_count: Option<i64>,
    content: String,
    reblog: Option<Box<Status<'t>>>,
    account: Option<Account<'t>>,
    media_attachments: Vec<Attachment<'t>>,
    mentions: Vec<MentionEntity<'t>>,
    tags: Vec<Tag<'t>>,
    emojis: [(); 0],
    card: Option<()>,
    poll: Option<()>,
    #[serde(flatten)]
    original: Original<'t>,
}

/// Mastodon's entity `Account`.
#[derive(Serialize)]
struct Account<'t> {
    id: &'t str,
    username: &'t str,
    acct: &'t str,
    display_name: &'t str,
    locked: bool,
    bot: bool,
    created_at: Option<String>,
    note: String,
    url: String,
    uri: String,
    avatar: &'t str,
    avatar_static: &'t str,
    header: &'t str,
    header_static: &'t str,
    followers_count: Option<i64>,
    following_count: Option<i64>,
    statuses_count: Option<i64>,
    emojis: [(); 0],
    fields: [(); 0],
    #[serde(flatten)]
    original: Original<'t>,
}

impl<'t> Account<'t> {
    fn of(user: &'t User<'_>) -> Self {
        let url = profile(&user.username);
        let avatar = user.avatar.as_deref().unwrap_or_default();
        let header = user.header.as_deref().unwrap_or_default();
        Self {
            id: user.id.as_str(),
            username: &user.username,
            acct: &user.username,
            display_name: &user.name,
            locked: user.is_protected,
            bot: false,
            created_at: user.created_at_ms.and_then(iso_8601),
            note: tweet_html::html(&user.description, &[]),
            uri: url.clone(),
            url,
            avatar,
            avatar_static: avatar,
            header,
            header_static: header,
            followers_count: user.followers,
            following_count: user.following,
            statuses_count: user.tweets,
            emojis: [],
            fields: [],
            original: user.original,
        }
    }
}

/// Mastodon's entity `MediaAttachment`.
#[derive(Serialize)]
struct Attachment<'t> {
    id: &'t str,
    #[serde(rename = "type")]
    kind: &'static str,
    url: Option<&'t str>,
    preview_url: Option<&'t str>,
    remote_url: Option<&'t str>,
    description: Option<&'t str>,
    blurhash: Option<()>,
    meta: AttachmentMeta,
    #[serde(flatten)]
    original: Original<'t>,
}

impl<'t> Attachment<'t> {
    fn of(media: &'t Media<'_>) -> Self {
        Self {
            id: media.id.as_str(),
            kind: media.kind,
            url: media.url.as_deref(),
            preview_url: media.preview.as_deref(),
            remote_url: media.url.as_deref(),
            description: media.description.as_deref(),
            blurhash: None,
            meta: AttachmentMeta {
                original: media
                    .width
                    .zip(media.height)
                    .map(|(width, height)| AttachmentSize { width, height }),
            },
            original: media.original,
        }
    }
}

#[derive(Serialize)]
struct AttachmentMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<AttachmentSize>,
}

#[derive(Serialize)]
struct AttachmentSize {
    width: i64,
    height: i64,
}

/// Mastodon's entity `Status::Mention`.
#[derive(Serialize)]
struct MentionEntity<'t> {
    id: &'t str,
    username: &'t str,
    acct: &'t str,
    url: String,
}

impl<'t> MentionEntity<'t> {
    fn of(mention: &'t Mention<'_>) -> Self {
        Self {
            id: mention.id.as_ref().map_or("0", UpstreamId::as_str),
            username: &mention.username,
            acct: &mention.username,
            url: profile(&mention.username),
        }
    }
}

/// Mastodon's entity `Status::Tag`.
#[derive(Serialize)]
struct Tag<'t> {
    name: &'t str,
    url: String,
}

impl<'t> Tag<'t> {
    fn of(tag: &'t Hashtag<'_>) -> Self {
        Self {
            name: &tag.name,
            url: hashtag(&tag.name),
        }
    }
}

/// Whether X or Twitter could have made this ID: a number of at most 19 digits.
pub(crate) fn is_id(id: &UpstreamId) -> bool {
    id.as_str().len() <= 19 && IdOrder::Numeric.key(id).is_ok()
}

/// A timeline's posts: each at its own ID.
pub(crate) fn listed(posts: Vec<Post>) -> Vec<Listed> {
    let listed = posts.into_iter().map(|post| Listed {
        position: post.id.clone(),
        post,
    });
    listed.collect()
}

/// What a look-up found that asked for one post. Whatever hides the post, it
/// is gone for this reader.
pub(crate) fn of_one(found: LookUps) -> (LookUp, AnswerHeaders) {
    let LookUps { findings, headers } = found;
    let post = findings.into_iter().find_map(|(_, finding)| match finding {
        Finding::Found(post) => Some(post),
        Finding::Missing | Finding::Gone | Finding::Hidden => None,
    });
    (post.map_or(LookUp::Gone, LookUp::Found), headers)
}

/// When a tweet's ID was made, Unix ms; `None` for an ID from before
/// Snowflake, which has no time.
pub(crate) fn id_time_ms(id: &UpstreamId) -> Option<i64> {
    let number: i64 = id.as_str().parse().ok()?;
    (number > LAST_SEQUENTIAL_ID).then(|| (number >> 22) + SNOWFLAKE_EPOCH_MS)
}

/// When a tweet was last edited, Unix ms, by the IDs of its versions, which
/// are in no documented order: each edit is a tweet with an ID of its
/// own, made when it was edited.
pub(crate) fn edited_at_ms<'i>(versions: impl IntoIterator<Item = &'i UpstreamId>) -> Option<i64> {
    let times: Vec<_> = versions.into_iter().filter_map(id_time_ms).collect();
    let (oldest, newest) = (times.iter().min()?, times.iter().max()?);
    (oldest < newest).then_some(*newest)
}

fn profile(username: &str) -> String {
    format!("{SITE}/{}", crate::segment::encoded(username))
}

fn hashtag(name: &str) -> String {
    format!("{SITE}/hashtag/{}", crate::segment::encoded(name))
}

fn iso_8601(unix_ms: i64) -> Option<String> {
    let time = Timestamp::from_millisecond(unix_ms).ok()?;
    Some(format!("{time:.3}"))
}

/// The most of each kind of link that is read of a tweet; more are some attack.
pub(crate) const MAX_ENTITIES: usize = 500;
/// The most pictures and films of a tweet; X allows 4.
pub(crate) const MAX_MEDIA: usize = 16;
/// The most versions of a tweet that are read of it; X allows 6.
pub(crate) const MAX_VERSIONS: usize = 16;

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
}
