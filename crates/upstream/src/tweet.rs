//! A tweet of either API, and the post that is made of it.
//!
//! The rest of the system shows a post's JSON as a Mastodon status, so that is
//! what a tweet turns into; the tweet itself is kept in it, under the name of
//! the API that it came from, and so are its author and its media. Only what
//! concerns the account of the token is kept apart.

use std::borrow::Cow;

use driftline_core::{
    answer::{AnswerHeaders, Finding, Listed, LookUp, LookUps},
    post::{Author, Counts, Post, PostHashes, Visibility},
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_mastodon::{
    Account, MediaAttachment, MediaMeta, MediaSize, Mention as MentionEntity, Status, Tag,
    iso_8601, post_hashes, viewer,
};
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
#[derive(Debug, Clone, Copy)]
pub(crate) enum Original<'j> {
    X(&'j RawValue),
    Twitter(&'j RawValue),
}

impl<'j> Original<'j> {
    /// As the members `x` and `twitter` of an entity.
    fn members(self) -> (Option<&'j RawValue>, Option<&'j RawValue>) {
        match self {
            Self::X(raw) => (Some(raw), None),
            Self::Twitter(raw) => (None, Some(raw)),
        }
    }
}

impl<'j> Tweet<'j> {
    /// The post that it is here.
    pub(crate) fn post(&self) -> Result<Post, serde_json::Error> {
        let boost_of = match &self.boost_of {
            Some(boosted) => Some(Box::new(boosted.post()?)),
            None => None,
        };
        let status = self.status();
        let mut post = Post {
            id: self.id.clone(),
            uri: Some(status.uri.to_string()),
            url: Some(status.url.to_string()),
            created_at_ms: self.created_at_ms,
            edited_at_ms: self.edited_at_ms,
            visibility: self.visibility(),
            author: self.author(status.account.as_ref())?,
            boost_of,
            counts: self.counts,
            hashes: PostHashes::default(),
            raw: serde_json::to_string(&status)?,
            viewer: None,
        };
        post.hashes = post_hashes(&post, &post.raw);
        if let Some(split) = viewer::split(&post.raw) {
            post.raw = split.status;
            post.viewer = Some(split.viewer);
        }
        Ok(post)
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
            url: Some(account.url.to_string()),
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
        let (x, twitter) = self.original.members();
        Status {
            id: self.id.as_str().into(),
            created_at: self.created_at_ms.map(iso_8601),
            edited_at: self.edited_at_ms.map(iso_8601),
            in_reply_to_id: self.replied_to.as_ref().map(|id| id.as_str().into()),
            in_reply_to_account_id: self.replied_user.as_ref().map(|id| id.as_str().into()),
            sensitive: self.is_sensitive,
            spoiler_text: "".into(),
            visibility: self.visibility().name().into(),
            language: self.language.as_deref().map(Cow::from),
            uri: url.clone().into(),
            url: url.into(),
            replies_count: self.counts.replies,
            reblogs_count: self.counts.boosts,
            favourites_count: self.counts.favourites,
            quotes_count: self.counts.quotes,
            content: self.content().into(),
            reblog: self
                .boost_of
                .as_ref()
                .map(|boosted| Box::new(boosted.status())),
            account: self.user.as_ref().map(account),
            media_attachments: self.media.iter().map(attachment).collect(),
            mentions: self.mentions.iter().map(mention).collect(),
            tags: self.hashtags.iter().map(tag).collect(),
            emojis: Vec::new(),
            card: None,
            poll: None,
            x,
            twitter,
        }
    }
}

fn account<'t>(user: &'t User<'_>) -> Account<'t> {
    let url = profile(&user.username);
    let avatar = user.avatar.as_deref().unwrap_or_default();
    let header = user.header.as_deref().unwrap_or_default();
    let (x, twitter) = user.original.members();
    Account {
        id: user.id.as_str().into(),
        username: user.username.as_ref().into(),
        acct: user.username.as_ref().into(),
        display_name: user.name.as_ref().into(),
        locked: user.is_protected,
        bot: false,
        created_at: user.created_at_ms.map(iso_8601),
        note: tweet_html::html(&user.description, &[]).into(),
        uri: url.clone().into(),
        url: url.into(),
        avatar: avatar.into(),
        avatar_static: avatar.into(),
        header: header.into(),
        header_static: header.into(),
        followers_count: user.followers,
        following_count: user.following,
        statuses_count: user.tweets,
        emojis: Vec::new(),
        fields: Vec::new(),
        x,
        twitter,
    }
}

fn attachment<'t>(media: &'t Media<'_>) -> MediaAttachment<'t> {
    let size = media.width.zip(media.height);
    let (x, twitter) = media.original.members();
    MediaAttachment {
        id: media.id.as_str().into(),
        kind: media.kind.into(),
        url: media.url.as_deref().map(Cow::from),
        preview_url: media.preview.as_deref().map(Cow::from),
        remote_url: media.url.as_deref().map(Cow::from),
        description: media.description.as_deref().map(Cow::from),
        blurhash: None,
        meta: MediaMeta {
            original: size.map(|(width, height)| MediaSize { width, height }),
        },
        x,
        twitter,
    }
}

fn mention<'t>(mention: &'t Mention<'_>) -> MentionEntity<'t> {
    MentionEntity {
        id: mention.id.as_ref().map_or("0", UpstreamId::as_str).into(),
        username: mention.username.as_ref().into(),
        acct: mention.username.as_ref().into(),
        url: profile(&mention.username).into(),
    }
}

fn tag<'t>(tag: &'t Hashtag<'_>) -> Tag<'t> {
    Tag {
        name: tag.name.as_ref().into(),
        url: hashtag(&tag.name).into(),
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
