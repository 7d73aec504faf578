//! Requests for parts of a timeline, and the posts that it returns.

use driftline_core::post::Visibility;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{AccountId, InstanceId, LocalId, SourceId},
};

/// A part of a timeline, with Mastodon's bounds.
///
/// Without `min` these are the newest posts within the bounds; with `min`, those just above it. The
/// newest post comes first in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Only IDs above this one.
    pub since: Option<LocalId>,
    /// Only IDs above this one, the lowest of them.
    pub min: Option<LocalId>,
    /// Only IDs below this one.
    pub max: Option<LocalId>,
    /// The largest number of posts.
    pub limit: u16,
}

/// The result of one transaction that read a part of a timeline of which not every post is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The posts that are shown, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The rest, which is read next; `None` if there are enough posts, or no more.
    pub rest: Option<Range>,
}

impl Stretch {
    /// A part of which everything is still to be read.
    pub const fn unread(range: Range) -> Stretch {
        Stretch {
            posts: Vec::new(),
            rest: Some(range),
        }
    }

    /// Adds the part that was read of the rest.
    pub fn add(&mut self, next: Stretch) {
        match self.rest.and_then(|range| range.min) {
            // Upward, what is read later is newer.
            Some(_) => self.posts.splice(0..0, next.posts).for_each(drop),
            None => self.posts.extend(next.posts),
        }
        self.rest = next.rest;
    }

    /// The last place that was read, if there is a rest.
    pub fn stopped_at(&self) -> Option<LocalId> {
        self.rest.and_then(|rest| rest.min.or(rest.max))
    }
}

/// A post in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePost {
    /// Its place in this timeline. A post that was requested by one of its IDs has that ID.
    pub id: LocalId,
    /// The ID by which the store knows it: that of its first entry. It may belong to an entry that
    /// the viewer may not see, and is never shown.
    pub post_id: LocalId,
    /// Its ID in the public timeline, by which other posts refer to it: that of its first entry in
    /// a source that everybody may read, and a new one after each return from a deletion.
    pub public_id: LocalId,
    /// The instance through which it was seen.
    pub instance: InstanceId,
    /// Its ID there.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its author's ID; `None` if the upstream left the author out.
    pub account: Option<AccountId>,
    /// The time of creation according to its author, in Unix ms.
    pub created_at_ms: Option<i64>,
    /// The time of its last edit, in Unix ms.
    pub edited_at_ms: Option<i64>,
    /// The people who may see it at the upstream.
    pub visibility: Visibility,
    /// The upstream ID of the post that it boosts.
    pub boost_of: Option<String>,
    /// The post as it was received, JSON.
    pub raw: String,
    /// Its other copies at other instances, including those that the viewer may not read; empty in
    /// a source's own timeline.
    pub copies: Vec<PostKey>,
}

/// The rule of a home timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeRule {
    /// All posts of these sources that its owner may see.
    pub sources: Vec<SourceId>,
    /// The posts of these authors in every source that its owner may read.
    pub authors: Vec<AccountId>,
}

/// A selection of posts among those that may be shown.
pub trait Pick {
    /// Returns the selected posts, in their order. Is called with a few posts at a time.
    ///
    /// # Errors
    /// [`StoreError`] if the selection reads the store and fails.
    fn pick(
        &self,
        tx: &mut Tx<'_>,
        posts: Vec<TimelinePost>,
    ) -> Result<Vec<TimelinePost>, StoreError>;
}

/// A selection, borrowed.
pub type Picks<'a> = &'a dyn Pick;

impl<F: Fn(&TimelinePost) -> bool> Pick for F {
    fn pick(
        &self,
        _: &mut Tx<'_>,
        mut posts: Vec<TimelinePost>,
    ) -> Result<Vec<TimelinePost>, StoreError> {
        posts.retain(|post| self(post));
        Ok(posts)
    }
}

impl TimelinePost {
    /// Its key for things that people keep.
    pub fn key(&self) -> PostKey {
        PostKey {
            post: self.post_id,
            instance: self.instance,
        }
    }
}

/// A post by the ID by which the store knows it, with its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostKey {
    /// The ID by which the store knows it: [`TimelinePost::post_id`].
    pub post: LocalId,
    /// The instance through which it was seen.
    pub instance: InstanceId,
}
