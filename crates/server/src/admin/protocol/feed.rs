//! Requests about the feed of changes.

pub use driftline_api::feed::PostRecord;
use driftline_core::feed::{ChangeKind, ChangeKinds};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Read the feed of changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadFeed {
    /// The sources' names; all of them without any.
    pub sources: Vec<String>,
    /// The position to go on after; without it only the position after all that is stored is asked for.
    pub after: Option<String>,
    /// What is told.
    pub events: ChangeKinds,
    /// Also posts that were older than what their source had shown when they were stored.
    pub history: bool,
    /// Also that a post was new or edited that is deleted by now.
    pub tombstones: bool,
    /// The predicate with which each post is compared; without it every event is a match.
    pub matching: Option<String>,
    /// The most events.
    pub limit: u32,
    /// How long to wait for an event, ms; 30 s at most.
    pub wait_ms: u64,
}

/// A part of the feed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedPage {
    /// The events, in their order.
    pub events: Vec<FeedLine>,
    /// The position after them, or further if nothing that is followed came since.
    pub position: String,
}

/// An event of the feed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeedLine {
    /// The position after it.
    pub position: String,
    /// What happened.
    pub event: ChangeKind,
    /// The source's name.
    pub source: String,
    /// False if the request has a predicate that the post does not match. A deletion always is a match.
    pub is_match: bool,
    /// The event as `GET /api/v1/stream/posts` tells it.
    pub data: Box<RawValue>,
}
