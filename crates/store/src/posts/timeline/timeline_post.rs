//! What is asked of a timeline, and the posts that it returns.

use driftline_core::post::Visibility;

use crate::id_types::{AccountId, InstanceId, LocalId, SourceId};

/// A part of a timeline, with Mastodon's bounds.
///
/// Without `min` these are the newest posts within the bounds; with `min`, those just above it.
/// The newest post comes first either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Only IDs above this one.
    pub since: Option<LocalId>,
    /// Only IDs above this one, the lowest of them.
    pub min: Option<LocalId>,
    /// Only IDs below this one.
    pub max: Option<LocalId>,
    /// The most posts.
    pub limit: u16,
}

/// What one transaction read of a part of a timeline of which not every post is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The posts that are shown, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The rest, to be read next; `None` if there are posts enough, or no more.
    pub rest: Option<Range>,
}

/// A post in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePost {
    /// Its place in this timeline. For a post requested by one of its IDs, that one.
    pub id: LocalId,
    /// The ID that the store knows it by: that of its first entry. It may be of an entry that the viewer
    /// may not see, and is never shown.
    pub post_id: LocalId,
    /// Its ID in the public timeline, by which other posts refer to it: that of its first entry
    /// in a source for the world, and a new one each time that it returned after a deletion.
    pub public_id: LocalId,
    /// The instance that it was seen through.
    pub instance: InstanceId,
    /// Its ID there.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its author's ID; `None` if the upstream left the author out.
    pub account: Option<AccountId>,
    /// When its author says that it was written, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When it was last edited, Unix ms.
    pub edited_at_ms: Option<i64>,
    /// Who may see it at the upstream.
    pub visibility: Visibility,
    /// The upstream ID of the post that it boosts.
    pub boost_of: Option<String>,
    /// The post as it came, JSON.
    pub raw: String,
    /// The other copies of it, of other instances, whether or not the viewer may read them; empty in a source's own
    /// timeline.
    pub copies: Vec<PostKey>,
}

/// What a home timeline takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeRule {
    /// All posts of these sources that its owner may see.
    pub sources: Vec<SourceId>,
    /// The posts of these authors in every source that its owner may read.
    pub authors: Vec<AccountId>,
}

/// What picks posts among those that may be shown.
pub type Picks<'a> = &'a dyn Fn(&TimelinePost) -> bool;

impl TimelinePost {
    /// Names it for what people keep.
    pub fn key(&self) -> PostKey {
        PostKey {
            post: self.post_id,
            instance: self.instance,
        }
    }
}

/// A post by the ID that the store knows it by, with its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostKey {
    /// [`TimelinePost::post_id`].
    pub post: LocalId,
    /// The instance that it was seen through.
    pub instance: InstanceId,
}
