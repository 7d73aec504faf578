//! Requests about the search index.

use driftline_store::LocalId;
use serde::{Deserialize, Serialize};

/// Count the posts that a rebuild of the search index reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanIndexRebuild;

/// The extent of a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPlan {
    /// The number of stored posts.
    pub posts: u64,
}

/// Rebuild the searchable texts of the next posts, where they are missing or outdated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RebuildIndex {
    /// Only posts after the one of this ID; from the first one on without.
    pub after: Option<LocalId>,
}

/// A part of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPortion {
    /// The number of posts that were read.
    pub posts: u64,
    /// The number of texts that were written.
    pub texts: u64,
    /// The last post's ID, which the next part begins after; `None` at the end.
    pub next: Option<LocalId>,
}
