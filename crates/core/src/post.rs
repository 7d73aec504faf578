//! Posts and their authors as an upstream shows them.

use serde::{Deserialize, Serialize};

use crate::{object_uri::UriEvidence, upstream_id::UpstreamId};

named_enum! {
    /// Who may see a post, in Mastodon's terms.
    pub enum Visibility: "lowercase" {
        /// Everyone, and it appears in public timelines.
        Public,
        /// Everyone, but it stays out of public timelines.
        Unlisted,
        /// The author's followers.
        Private,
        /// The accounts it names.
        Direct,
    }
}

impl Visibility {
    /// How hidden a post is, as the store counts it: 0 of a public one, 3 of a direct one.
    pub fn narrowness(self) -> i64 {
        self as i64
    }

    /// The visibility of that name; an unknown name maps to the narrowest, so
    /// that no hidden post is shown.
    pub fn named_or_narrowest(name: &str) -> Self {
        name.parse().unwrap_or(Self::Direct)
    }
}

/// A post's author as the upstream shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The account's ID at the upstream.
    pub id: UpstreamId,
    /// `name`, or `name@host` for an account of another server.
    pub acct: String,
    /// The name that people read; may be empty.
    pub display_name: String,
    /// The account's address for people.
    pub url: Option<String>,
    /// Its name across servers (ActivityPub's `id`).
    pub uri: Option<String>,
    /// The account object as received, JSON.
    pub raw: String,
}

/// A post as one answer of the upstream showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Its ID at the upstream.
    pub id: UpstreamId,
    /// Its name across servers (ActivityPub's `id`).
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its creation time as the author states it, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When it was last edited, Unix ms; `None` if never.
    pub edited_at_ms: Option<i64>,
    /// Who may see it.
    pub visibility: Visibility,
    /// Its author.
    pub author: Author,
    /// The post that this one boosts.
    pub boost_of: Option<Box<Post>>,
    /// The ID at the upstream of the post that this one replies to.
    pub reply_to: Option<UpstreamId>,
    /// What it refers to besides itself and its author.
    pub references: References,
    /// Its counts, as far as the upstream reports them.
    pub counts: Counts,
    /// Its hashes.
    pub hashes: PostHashes,
    /// The post as received, JSON, without [`Post::viewer`]. Of repeated keys it holds the last.
    pub raw: String,
    /// What the answer said of the account with whose token the post was read (whether it has
    /// favourited the post, how it has voted), JSON; for that account alone.
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
            raw: raw.into(),
            viewer: None,
        }
    }

    /// Returns true if the server at an origin only claims to know it: the URI or the author of it, or of the post that
    /// it boosts, is of another server, which may have written it otherwise or not at all.
    pub fn is_claimed(&self, origin: &str) -> bool {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        let boosted = self.boost_of.as_deref();
        [Some(self), boosted].into_iter().flatten().any(|post| {
            let of_uri = post.uri.as_deref().map(|uri| UriEvidence::of(uri, origin));
            let of_author = post.author.acct.rsplit_once('@').map(|(_, of)| of);
            of_uri == Some(UriEvidence::Claimed)
                || of_author.is_some_and(|of| !of.eq_ignore_ascii_case(host))
        })
    }
}

named_enum! {
    /// What a post is to look-ups: some servers find posts and not boosts.
    pub enum PostKind: "lowercase" {
        /// A post with content of its own.
        Post,
        /// A boost of another post.
        Boost,
    }
}

impl PostKind {
    /// The kind of a post that is a boost or not.
    pub const fn of(is_boost: bool) -> Self {
        if is_boost { Self::Boost } else { Self::Post }
    }
}

/// The posts and accounts that a post refers to by their IDs at the upstream: what it replies to,
/// boosts or quotes, whom it mentions. In no order, each at least once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References {
    /// Posts.
    pub posts: Vec<UpstreamId>,
    /// Accounts.
    pub accounts: Vec<UpstreamId>,
}

/// Hashes that tell the versions of a post apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostHashes {
    /// A hash of what an author can edit: counts and whatever else changes by itself stay out.
    pub content: i64,
    /// A hash of all that may differ from one refresh to the next: the content, the counts, and a
    /// poll's votes.
    pub state: i64,
}

/// A post's counts at the upstream; `None` where it reports none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Replies.
    pub replies: Option<i64>,
    /// Boosts.
    pub boosts: Option<i64>,
    /// Favourites.
    pub favourites: Option<i64>,
    /// Posts that quote it.
    pub quotes: Option<i64>,
    /// How often it was seen.
    pub views: Option<i64>,
}

impl Post {
    /// Whether it is a boost.
    pub const fn kind(&self) -> PostKind {
        PostKind::of(self.boost_of.is_some())
    }
}

impl Counts {
    /// The sum of replies, boosts, favourites and quotes, by which growth is measured. Views are
    /// left out, since they would drown the rest.
    pub fn total(&self) -> i64 {
        [self.replies, self.boosts, self.favourites, self.quotes]
            .into_iter()
            .flatten()
            .fold(0, i64::saturating_add)
    }
}
