//! What really happened in a world.

use std::collections::HashSet;

use driftline_core::upstream_id::UpstreamId;

/// Every post that was ever visible up to a time, in the order of IDs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truth {
    /// The posts.
    pub posts: Vec<TruePost>,
}

/// A post's life up to the time that was asked about. Times are Unix ms of
/// the true clock, except `id_time_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruePost {
    /// Its ID; the first one, if an edit changed it.
    pub id: UpstreamId,
    /// The ID that an edit gave it.
    pub edited_id: Option<UpstreamId>,
    /// The post that it boosts.
    pub boost_of: Option<UpstreamId>,
    /// Whether it cannot be read as a post.
    pub is_unreadable: bool,
    /// When it became visible.
    pub visible_at_ms: i64,
    /// The time that its ID was made from, by the clock that made it.
    pub id_time_ms: i64,
    /// When it was deleted.
    pub deleted_at_ms: Option<i64>,
    /// When it was edited.
    pub edited_at_ms: Option<i64>,
    /// How long it was visible before it was deleted; `None` while it is.
    pub visible_for_ms: Option<i64>,
    /// [`crate::content_hash`] of its last text, a decimal in JSON.
    pub content_hash: u64,
    /// Its text as edited, if it was.
    pub edited_content: Option<String>,
}

impl TruePost {
    /// How late it was, ms; negative if its ID came from the future.
    pub fn lateness_ms(&self) -> i64 {
        self.visible_at_ms - self.id_time_ms
    }
}

impl Truth {
    /// The posts that are not in a store, except those that need not be
    /// see: visible for less than `moment_ms` before they were deleted.
    pub fn missing_from(&self, stored: &HashSet<UpstreamId>, moment_ms: i64) -> Vec<&TruePost> {
        self.posts
            .iter()
            .filter(|post| post.visible_for_ms.is_none_or(|ms| ms >= moment_ms))
            .filter(|post| !stored.contains(&post.id))
            .collect()
    }
}
