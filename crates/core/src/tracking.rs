//! Requests to track posts, and their results.

use serde::{Deserialize, Serialize};

use crate::api::Api;

/// Post IDs of an upstream to look up, to store and, unless `once`, to keep fresh. Unknown fields are
/// refused, so that none is silently ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Track {
    /// The server's address, with `https://`, or the host of one that is known.
    pub instance: String,
    /// The API that it speaks, where it is not known yet.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, example = "mastodon"))]
    pub api: Option<Api>,
    /// The posts' IDs there.
    pub ids: Vec<String>,
    /// True if they are only looked up once.
    #[serde(default)]
    pub once: bool,
}

/// The result of a request to track posts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrackResult {
    /// The source that holds the posts.
    pub source: String,
    /// The number of IDs in the request.
    pub named: u64,
    /// IDs that will be looked up.
    pub new: u64,
    /// IDs of posts that are already stored.
    pub stored: u64,
    /// IDs of earlier requests whose look-up is pending or found nothing.
    pub waiting_or_missing: u64,
    /// Repeated IDs.
    pub repeated: u64,
    /// Invalid IDs, shortened.
    pub bad: Vec<String>,
}

/// The tracked posts of a server, counted by state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrackedPosts {
    /// The source that holds them.
    pub source: String,
    /// Posts with a pending look-up.
    pub waiting: u64,
    /// Posts that look-ups did not find.
    pub missing: u64,
    /// Posts that were found.
    pub found: u64,
}

/// The tracked posts of a server that are removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenPosts {
    /// The source that contains them.
    pub source: String,
    /// IDs without a stored post, which are not looked up any more.
    pub lookups: u64,
    /// Stored posts that are not refreshed any more.
    pub posts: u64,
    /// Stored posts that another source keeps fresh.
    pub kept: u64,
    /// Stored posts that another process is looking up, which are refreshed as before.
    pub in_work: u64,
}

named_enum! {
    /// The state of a post that was named by its ID.
    pub enum TrackOutcome: "snake_case" {
        /// The post is stored.
        Found,
        /// The post is stored, and has been deleted at the upstream since.
        Deleted,
        /// The post's look-up is pending.
        Waiting,
        /// The upstream has no such post.
        Gone,
        /// The post is hidden from the credentials that were used.
        NotVisible,
        /// The post's look-ups failed too often.
        Failed,
        /// The ID was never named, or the upstream cannot have such an ID.
        Unknown,
    }
}
