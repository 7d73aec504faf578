//! Requests about instances.

use driftline_core::{api::Api, social::InstanceInfo, timeline::Honoured};
use serde::{Deserialize, Serialize};

/// List the instances that the store knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListInstances;

/// An instance, with what hangs from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownInstance {
    /// Its ID, which follows from its host; empty from a server of an earlier version.
    #[serde(default)]
    pub id: String,
    /// Its address.
    pub address: String,
    /// The API that it speaks.
    pub api: Api,
    /// The number of posts that are stored of it.
    pub posts: u64,
    /// The sources that read it, and the one of its tracked posts.
    pub sources: Vec<String>,
    /// The credentials that its posts are refreshed with.
    pub credentials: Vec<String>,
    /// What it says of itself, once it did.
    #[serde(default)]
    pub info: Option<KnownInstanceInfo>,
}

/// What an instance says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownInstanceInfo {
    /// What it says.
    #[serde(flatten)]
    pub said: InstanceInfo,
    /// When it said so, Unix ms.
    pub fetched_at_ms: i64,
}

/// Show what an instance honours of the requests for its timelines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowInstance {
    /// Its address as the operator typed it.
    pub address: String,
}

/// What an instance honours, as the answers to its sources have shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownInstance {
    /// Its ID, which follows from its host; empty from a server of an earlier version.
    #[serde(default)]
    pub id: String,
    /// Its address; of an author's host, which no source reads, the one that it most likely has.
    pub address: String,
    /// What it says of itself, once it did.
    #[serde(default)]
    pub info: Option<KnownInstanceInfo>,
    /// Whether a source reads it; else it is known by its authors alone.
    #[serde(default)]
    pub is_read: bool,
    /// The timelines that are mirrored, by name.
    pub timelines: Vec<TimelineAbilities>,
    /// What look-ups of single posts found, by credential.
    pub look_ups: Vec<CredentialLookUps>,
}

/// Count what goes with an instance if it is forgotten.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanForgetting {
    /// Its address as the operator typed it.
    pub address: String,
}

/// Forget an instance: remove its sources, its credentials, and all that is stored of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetInstance {
    /// Its address as the operator typed it.
    pub address: String,
}

/// An instance that is to be forgotten, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenInstance {
    /// Its address.
    pub address: String,
    /// Its sources, but for those that are private to accounts.
    pub sources: Vec<String>,
    /// The number of its sources that are private to accounts.
    #[serde(default)]
    pub private_sources: u64,
    /// Its credentials, but for those of accounts.
    pub credentials: Vec<String>,
    /// The number of its credentials that are accounts', or that their private sources alone use.
    #[serde(default)]
    pub private_credentials: u64,
    /// The number of its posts.
    pub posts: u64,
    /// The number of its accounts: authors, and those that posts name.
    pub accounts: u64,
}

/// What a server honours of the requests for one timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineAbilities {
    /// The timeline.
    pub timeline: String,
    /// The source that reads it.
    pub source: String,
    /// `since_id`.
    pub since_id: Honoured,
    /// `min_id`.
    pub min_id: Honoured,
    /// `max_id`.
    pub max_id: Honoured,
    /// `since_id` and `max_id` together.
    pub both: Honoured,
    /// `limit`: ignored if a page was longer.
    pub limit: Honoured,
    /// The longest page so far, in items.
    pub longest_page: usize,
    /// Whether pages below the newest can be had by a `Link` header at most.
    pub link_only: bool,
    /// The order of its IDs, once a post was seen.
    pub order: Option<String>,
    /// The layout of the time in them, if they carry one.
    pub layout: Option<String>,
    /// Whether a post keeps its ID when it changes, once a post was seen.
    pub stable_ids: Option<bool>,
    /// Within how many ms of each other posts are listed in any order.
    pub precision_ms: i64,
    /// Why it cannot be proven that the source is complete, if it cannot.
    pub unprovable: Option<String>,
}

/// What look-ups of single posts with one credential found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialLookUps {
    /// The credential's name.
    pub credential: String,
    /// Whether it sends a token.
    pub has_token: bool,
    /// Of posts that are no boosts, once one that is live was looked up.
    pub posts: Option<LookUpsSeen>,
    /// Of boosts, likewise.
    pub boosts: Option<LookUpsSeen>,
}

/// What look-ups of live posts have shown last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookUpsSeen {
    /// Whether they are found; else the server says that they do not exist.
    pub found: bool,
    /// When that was seen, Unix ms.
    pub at_ms: i64,
}
