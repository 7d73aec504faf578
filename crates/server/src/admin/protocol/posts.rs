//! Requests about posts.

use driftline_core::{
    api::Api,
    post::{Counts, Visibility},
    refresh::LookupOutcome,
    tracking::Track,
};
use driftline_store::{
    LocalId,
    history::EndedBy,
    refresh::{CountsAt, GrowthHistory},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::QuotaLimit;

/// Show the refresh state of a post, and the reason for its due time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExplainPost {
    /// The post's ID, address or INSTANCE/ID.
    pub post: String,
}

/// The refresh state of a post.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PostState {
    /// Of a stored post.
    Stored(Box<StoredPostState>),
    /// Of a tracked post that is not stored.
    Pending(PendingPostState),
}

/// The refresh state of a stored post.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredPostState {
    /// Its ID.
    pub id: LocalId,
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// Its address for people.
    pub url: Option<String>,
    /// When its author says that it was written.
    pub created_at_ms: Option<i64>,
    /// When it was last edited.
    pub edited_at_ms: Option<i64>,
    /// When its deletion was noticed.
    pub deleted_at_ms: Option<i64>,
    /// The sources that list it no more, though it is not known to be deleted.
    pub left: Vec<LeftSource>,
    /// Who may see it at the upstream.
    pub visibility: Visibility,
    /// When it is refreshed next.
    pub due_at_ms: Option<i64>,
    /// The reason for the due time or for its lack.
    pub why: String,
    /// The last answer with it.
    pub refreshed_at_ms: Option<i64>,
    /// How often look-ups have refreshed it.
    pub refreshes: Option<u32>,
    /// Failed look-ups since the last answer.
    pub failures: Option<u32>,
    /// The outcome of its last look-up.
    pub outcome: Option<LookupOutcome>,
    /// Its counts.
    pub counts: Option<Counts>,
    /// Its counts after each change, the oldest first.
    pub history: Vec<CountsAt>,
}

/// A source that no longer lists a post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftSource {
    /// Its name.
    pub source: String,
    /// Since when.
    pub at_ms: i64,
}

/// The state of the look-up of a tracked post that is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPostState {
    /// It has no ID here: null.
    pub id: (),
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// The origin of its server.
    pub instance: String,
    /// Whether its look-up is pending.
    pub state: PendingState,
    /// When it was first requested.
    pub named_at_ms: i64,
    /// When it is looked up next.
    pub due_at_ms: Option<i64>,
    /// Failed look-ups.
    pub failures: u32,
    /// The outcome of its last look-up.
    pub outcome: Option<LookupOutcome>,
    /// The reason for its state.
    pub why: String,
}

/// Whether a tracked post's look-up is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingState {
    /// It is pending.
    Waiting,
    /// It found nothing.
    Missing,
}

/// Show a post's counts over time, its edits and its deletion.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowHistory {
    /// The post's ID, address or INSTANCE/ID.
    pub post: String,
}

/// A post over time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PostHistory {
    /// Its ID.
    pub id: LocalId,
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// Its counts after each change, the oldest first.
    pub counts: Vec<CountsAt>,
    /// Its earlier versions, the oldest first.
    pub versions: Vec<Version>,
    /// The last answer with it.
    pub refreshed_at_ms: Option<i64>,
    /// The outcome of its last look-up.
    pub outcome: Option<LookupOutcome>,
    /// When its deletion was noticed.
    pub deleted_at_ms: Option<i64>,
}

/// A version of a post that is no longer shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Version {
    /// When its end was noticed.
    pub until_ms: i64,
    /// What ended it.
    pub ended_by: EndedBy,
    /// The post as it was.
    pub status: Option<Box<RawValue>>,
}

/// List how the counts of posts grew, a page at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListGrowth {
    /// The instance, if the store knows several.
    pub instance: Option<String>,
    /// Only posts that were created since.
    pub since_ms: i64,
    /// Only posts after the one of this ID.
    pub after: LocalId,
    /// The page size in posts.
    pub limit: u32,
}

/// A page of the growth of posts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthPage {
    /// The instance's origin.
    pub instance: String,
    /// The posts, in order of their IDs.
    pub rows: Vec<GrowthHistory>,
    /// The last post's ID, which the next page begins after; `None` at the end.
    pub next: Option<LocalId>,
}

/// Track posts of an instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrackPosts {
    /// The posts.
    pub posts: Track,
    /// Let the server be in a private network. That is kept with the source that holds the posts.
    pub allow_private: bool,
    /// Ask the server for one of the posts before anything is stored.
    pub check: bool,
}

/// Count the tracked posts of an instance by state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountTracked {
    /// The instance.
    pub instance: String,
}

/// Forget tracked posts: they are neither looked up nor kept fresh any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetTracked {
    /// The instance.
    pub instance: String,
    /// Their IDs; all of the instance's without.
    pub ids: Option<Vec<String>>,
    /// Only count them.
    pub is_plan: bool,
}

/// Tell what became of posts that were named by their IDs: the reply has one outcome for each, in their
/// order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListOutcomes {
    /// The instance.
    pub instance: String,
    /// The IDs there.
    pub ids: Vec<String>,
}

/// Tell how posts of an instance are looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanLookUps {
    /// The instance, of which posts are tracked.
    pub instance: String,
}

/// How posts of an instance are looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookUpPlan {
    /// The origin of its server.
    pub origin: String,
    /// The API that it speaks.
    pub api: Api,
    /// Posts in one request, at most.
    pub batch: u64,
    /// Whether that is known. A Mastodon server is asked with the first look-up.
    pub batch_is_known: bool,
    /// Requests that may be sent in a second in the long run, of all credentials together, as far as
    /// answers have reported their limits; without what is left to polling.
    pub requests_per_s: Option<f64>,
    /// The limits, of each credential.
    pub limits: Vec<QuotaLimit>,
    /// When requests may be sent again, if none may now, Unix ms.
    pub until_ms: Option<i64>,
    /// Why none may be sent, or why the last had no answer.
    pub reason: Option<String>,
    /// When the first pending look-up is due, Unix ms.
    pub next_lookup_ms: Option<i64>,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let stored = json!({
            "id": LocalId::new(7), "upstream_id": "1", "url": null, "created_at_ms": 1,
            "edited_at_ms": null, "deleted_at_ms": null,
            "left": [{"source": "home", "at_ms": 1}], "visibility": "public", "due_at_ms": 2,
            "why": "of age", "refreshed_at_ms": 1, "refreshes": 0, "failures": 0,
            "outcome": "updated", "counts": null,
            "history": [{
                "at_ms": 1, "replies": null, "boosts": 2, "favourites": null, "quotes": null,
                "views": null,
            }],
        });
        let pending = json!({
            "id": null, "upstream_id": "1", "instance": "https://a.example", "state": "waiting",
            "named_at_ms": 1, "due_at_ms": null, "failures": 0, "outcome": null, "why": "pending",
        });
        let read = |value: &serde_json::Value| from_value::<PostState>(value.clone()).unwrap();
        assert!(matches!(read(&stored), PostState::Stored(_)));
        assert!(matches!(read(&pending), PostState::Pending(_)));
        for value in [stored, pending] {
            assert_eq!(to_value(read(&value)).unwrap(), value);
        }
    }
}
