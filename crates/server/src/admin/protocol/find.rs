//! Requests for posts by predicates.

use driftline_core::post::Visibility;
use driftline_store::LocalId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Find posts that a predicate selects, the newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindPosts {
    /// The predicate, in its text form.
    pub query: String,
    /// Only posts of this source.
    pub source: Option<String>,
    /// Only posts at places below this one.
    pub below: Option<LocalId>,
    /// Only posts at places above this one, the lowest of them.
    pub above: Option<LocalId>,
    /// The largest number of posts, up to 1,000; all are counted if only their number is needed.
    pub limit: u16,
    /// True if only the number of posts is needed.
    pub only_count: bool,
}

/// A portion of the posts that a predicate selects: as many as are found in a moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundPosts {
    /// The number of posts of the portion.
    pub count: u64,
    /// The posts, the newest first; empty if only their number is needed.
    pub posts: Vec<FoundPost>,
    /// The place after which the next portion begins, in the direction of the request; `None` after
    /// the last post. A portion may be empty before that.
    pub next: Option<LocalId>,
    /// The place above which a later search repeats none of these posts and finds those that were
    /// stored meanwhile.
    pub end: LocalId,
}

/// A post that a predicate selects.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoundPost {
    /// The viewer's place for it.
    pub id: LocalId,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// The address of the instance through which it was seen.
    pub instance: String,
    /// Its author, `name@host`.
    pub author: String,
    /// Its time of creation according to its author, in Unix ms.
    pub created_at_ms: Option<i64>,
    /// Its visibility at the upstream.
    pub visibility: Visibility,
    /// Its text, with its warning, the options of its poll and the descriptions of its media.
    pub text: String,
    /// The post as it was received.
    pub status: Box<RawValue>,
}

/// Explain how posts are found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExplainFind {
    /// The predicate, in its text form.
    pub query: String,
    /// Only posts of this source.
    pub source: Option<String>,
}

/// The way in which posts are found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindPlan {
    /// The predicate in its canonical form.
    pub predicate: String,
    /// The terms that the index looks up.
    pub lookup: String,
    /// The number of posts that the index has still to read, which every search checks.
    pub waiting: u32,
}
