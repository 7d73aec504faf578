//! Posts and their authors, as an upstream shows them.

use serde::{Deserialize, Serialize};

use crate::{names::object_uri::UriEvidence, post_text::PostText, upstream_id::UpstreamId};

named_enum! {
    /// The visibility of a post, in Mastodon's terms.
    pub enum Visibility: "lowercase" {
        /// Visible to everyone, and part of public timelines.
        Public,
        /// Visible to everyone, but not part of public timelines.
        Unlisted,
        /// Visible to the author's followers.
        Private,
        /// Visible to the accounts that it mentions.
        Direct,
    }
}

impl Visibility {
    /// Returns the number of steps by which a post is hidden: 0 for a public one, 3 for a direct one.
    pub fn narrowness(self) -> i64 {
        self as i64
    }

    /// The visibility with this name. An unknown name maps to the narrowest, so that no hidden post
    /// is shown.
    pub fn named_or_narrowest(name: &str) -> Self {
        name.parse().unwrap_or(Self::Direct)
    }
}

/// A post's author, as the upstream shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The account's ID at the upstream.
    pub id: UpstreamId,
    /// `name`, or `name@host` for an account of another server.
    pub acct: String,
    /// The display name; may be empty.
    pub display_name: String,
    /// The address of the account's page.
    pub url: Option<String>,
    /// The account's URI (ActivityPub's `id`).
    pub uri: Option<String>,
    /// The account object as received, JSON.
    pub raw: String,
}

/// A post as one answer of the upstream showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Its ID at the upstream.
    pub id: UpstreamId,
    /// Its URI (ActivityPub's `id`).
    pub uri: Option<String>,
    /// The address of its page.
    pub url: Option<String>,
    /// Its creation time as the author states it, Unix ms.
    pub created_at_ms: Option<i64>,
    /// The time of its last edit, in Unix ms; `None` if it was never edited.
    pub edited_at_ms: Option<i64>,
    /// Its visibility.
    pub visibility: Visibility,
    /// Its author.
    pub author: Author,
    /// The post that this one boosts.
    pub boost_of: Option<Box<Post>>,
    /// The ID at the upstream of the post that this one replies to.
    pub reply_to: Option<UpstreamId>,
    /// Its references to others than itself and its author.
    pub references: References,
    /// Its counts, if the upstream reports them.
    pub counts: Counts,
    /// Its hashes.
    pub hashes: PostHashes,
    /// Its searchable text. Versions with the same content hash have the same text.
    pub text: PostText,
    /// The post as received, JSON, without [`Post::viewer`]. Of repeated keys only the last is
    /// kept.
    pub raw: String,
    /// The parts of the answer that concern the account whose token was used, such as its favourite
    /// or its vote, JSON. Only for that account.
    pub viewer: Option<String>,
}

impl Post {
    /// A public post of which only its JSON, its ID and its author's ID are known.
    pub fn bare(
        id: impl Into<UpstreamId>,
        author: impl Into<UpstreamId>,
        raw: impl Into<String>,
    ) -> Self {
        let author = Author {
            id: author.into(),
            acct: String::new(),
            display_name: String::new(),
            url: None,
            uri: None,
            raw: "{}".to_owned(),
        };
        Self {
            id: id.into(),
            uri: None,
            url: None,
            created_at_ms: None,
            edited_at_ms: None,
            visibility: Visibility::Public,
            author,
            boost_of: None,
            reply_to: None,
            references: References::default(),
            counts: Counts::default(),
            hashes: PostHashes::default(),
            text: PostText::default(),
            raw: raw.into(),
            viewer: None,
        }
    }

    /// Returns true if the server at an origin only claims to know the post. The URI or author of
    /// it, or of the post that it boosts, then belongs to another server, which may have written it
    /// differently or not at all.
    pub fn is_claimed(&self, origin: &str) -> bool {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        let boosted = self.boost_of.as_deref();
        [Some(self), boosted].into_iter().flatten().any(|post| {
            let of_uri = post
                .uri
                .as_deref()
                .map(|uri| UriEvidence::for_uri(uri, origin));
            let of_author = post.author.acct.rsplit_once('@').map(|(_, of)| of);
            of_uri == Some(UriEvidence::Claimed)
                || of_author.is_some_and(|of| !of.eq_ignore_ascii_case(host))
        })
    }
}

named_enum! {
    /// The kind of a post for look-ups: some servers find posts but not boosts.
    pub enum PostKind: "lowercase" {
        /// A post with content of its own.
        Post,
        /// A boost of another post.
        Boost,
    }
}

impl PostKind {
    /// Returns the kind of a post that is a boost or not.
    pub const fn from_is_boost(is_boost: bool) -> Self {
        if is_boost { Self::Boost } else { Self::Post }
    }
}

/// The posts and accounts to which a post refers by their IDs at the upstream: those that it
/// replies to, boosts, quotes or mentions. In no order, each at least once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References {
    /// Posts.
    pub posts: Vec<UpstreamId>,
    /// Accounts.
    pub accounts: Vec<UpstreamId>,
}

/// Hashes that distinguish the versions of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostHashes {
    /// A hash of the parts that an author can edit, without counts and other parts that change by
    /// themselves.
    pub content: i64,
    /// A hash of all that may differ between two refreshes: the content, the counts, and a poll's
    /// votes.
    pub state: i64,
}

/// A post's counts at the upstream; `None` if the upstream does not report a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// The number of replies.
    pub replies: Option<i64>,
    /// The number of boosts.
    pub boosts: Option<i64>,
    /// The number of favourites.
    pub favourites: Option<i64>,
    /// The number of quotes.
    pub quotes: Option<i64>,
    /// The number of views.
    pub views: Option<i64>,
}

impl Post {
    /// The kind of the post: a boost or not.
    pub const fn kind(&self) -> PostKind {
        PostKind::from_is_boost(self.boost_of.is_some())
    }
}

impl Counts {
    /// The sum of replies, boosts, favourites and quotes, which measures growth. Views are left
    /// out, because they would dominate it.
    pub fn total(&self) -> i64 {
        [self.replies, self.boosts, self.favourites, self.quotes]
            .into_iter()
            .flatten()
            .fold(0, i64::saturating_add)
    }
}
