//! Requests about refreshing.

use std::collections::BTreeMap;

use driftline_core::refresh::{AgeBand, LookupOutcome};
use driftline_mirror::refresh::RefreshStats;
use driftline_store::refresh::BandState;
use serde::{Deserialize, Serialize};

use super::CredentialRow;

/// Show the state of refreshing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowRefreshStatus;

/// The state of refreshing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefreshStatus {
    /// The servers of the sources.
    pub instances: Vec<InstanceRow>,
    /// The credentials.
    pub credentials: Vec<CredentialRow>,
    /// Configured names without a credential.
    pub unknown_credentials: Vec<String>,
    /// Whether this process refreshes posts.
    pub running: bool,
}

/// The state of refreshing a server's posts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceRow {
    /// Its origin.
    pub instance: String,
    /// Stored posts that have a due time.
    pub scheduled: u64,
    /// Those whose due time has passed.
    pub overdue: u64,
    /// How long the first of those has been due, ms.
    pub oldest_overdue_ms: i64,
    /// Pending look-ups.
    pub pending_lookups: u64,
    /// How long the first of those has been due, ms.
    pub oldest_pending_ms: i64,
    /// Posts and pending look-ups in leases.
    pub leased: u64,
    /// The posts by age.
    pub bands: Vec<BandRow>,
    /// Posts in a look-up of this process, on average.
    pub mean_posts_a_request: Option<f64>,
    /// The work of this process's workers.
    pub since_start: Option<WorkerStats>,
    /// `age` or `value`.
    pub policy: String,
    /// Whether no configured credential belongs to the server, so that nothing refreshes its posts.
    pub without_credential: bool,
}

/// Scheduled posts of an age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandRow {
    /// Their age, and the interval that the table of ages gives them.
    #[serde(flatten)]
    pub band: AgeBand,
    /// Their state.
    #[serde(flatten)]
    pub state: BandState,
}

/// The work of a process's workers for a server, as [`RefreshStats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Look-ups sent.
    pub requests: u64,
    /// Posts in these look-ups.
    pub posts: u64,
    /// The number of posts by the name of their outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Claims that ended before their answers were saved.
    pub lost_leases: u64,
    /// Why the last look-up had no answer, if it had none.
    #[serde(default)]
    pub failure: Option<String>,
}

impl From<&RefreshStats> for WorkerStats {
    fn from(stats: &RefreshStats) -> Self {
        let names = LookupOutcome::ALL
            .iter()
            .map(|outcome| outcome.name().to_owned());
        Self {
            requests: stats.requests,
            posts: stats.posts,
            outcomes: names.zip(stats.outcomes).collect(),
            lost_leases: stats.lost_leases,
            failure: stats.failure.clone(),
        }
    }
}
