//! Requests about the state of the whole mirror.

use driftline_core::timeline::Proof;
use driftline_mirror::{RangeCounts, SourceState, SourceWait, Verdict};
use driftline_runtime::LowDisk;
use serde::{Deserialize, Serialize};

use super::{CredentialRow, NodeRow};

/// Show the state of the mirror. Costs little: no table is counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowStatus;

/// The state of the mirror at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// That time, by the clock of the process that answers.
    pub now_ms: i64,
    /// The process that holds the data folder; `None` if none runs there.
    pub process: Option<ProcessStatus>,
    /// The processes that share the work, those that have ended within the last hour too.
    pub nodes: Vec<NodeRow>,
    /// The sources, in order of their IDs.
    pub sources: Vec<SourceStatus>,
    /// The number of sources that are private to others.
    #[serde(default)]
    pub private_sources: u64,
    /// Whether this process refreshes posts.
    pub refreshing: bool,
    /// The servers whose posts are refreshed, or would be.
    pub instances: Vec<RefreshLoad>,
    /// The credentials with what is left of their quotas.
    pub credentials: Vec<CredentialRow>,
    /// The ID service of this process, if it runs.
    pub ids: Option<IdServiceStatus>,
    /// Why the process fetches nothing for want of room on the disk, if it does.
    pub low_disk: Option<LowDisk>,
    /// The size of the tables and indexes of a PostgreSQL store; `None` for a file, and for a
    /// distributed store, whose tables lie on many servers.
    pub postgresql_bytes: Option<u64>,
    /// How many follow the feed of changes at this process; `None` if none runs.
    pub followers: Option<u64>,
}

/// A process that holds a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The command that it was started with: `serve` or `mirror`.
    pub command: String,
    /// Its number.
    pub pid: u32,
    /// Its program's version.
    pub version: String,
    /// When it was started.
    pub since_ms: i64,
    /// Its name among the processes that share the work, if it is one of them.
    pub node: Option<String>,
}

/// The state of a source, as its machine knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: SourceState,
    /// The state in words.
    pub state_text: String,
    /// The wait that its server has asked for, if it is not over.
    pub wait: Option<SourceWait>,
    /// Whether it is complete up to its last poll, or what is in the way first.
    pub verdict: Verdict,
    /// New posts a minute, lately.
    pub posts_a_minute: f64,
    /// From the time that a post bears until it was stored: the median of the last posts; `None`
    /// before the first one with a time.
    pub delay_ms: Option<i64>,
    /// The time within which 99% of posts become visible, as estimated; `None` while nothing is
    /// measured.
    pub lateness_ms: Option<i64>,
    /// The longest lateness that was seen.
    pub longest_lateness_ms: Option<i64>,
    /// What reading again has proven; `None` before the first post.
    pub proof: Option<Proof>,
    /// Its ranges that are not proven complete, by why they are not.
    pub ranges: RangeCounts,
    /// Items of its pages that no post could be read from.
    pub unreadable: u64,
    /// When a poll last succeeded.
    pub last_poll_ms: Option<i64>,
}

/// What refreshing a server's posts has to do, and what this process has done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefreshLoad {
    /// Its origin.
    pub instance: String,
    /// Look-ups of this process since it began; `None` if it refreshes nothing.
    pub requests: Option<u64>,
    /// Posts in one of them, on average.
    pub mean_posts_a_request: Option<f64>,
    /// The most posts in a look-up of this server.
    pub max_posts_a_request: u64,
    /// Posts and pending look-ups that are due and wait for a worker, as far as they were counted.
    pub overdue: u64,
    /// Whether there may be more than were counted.
    pub has_more: bool,
    /// How long the first of those has been due.
    pub oldest_overdue_ms: Option<i64>,
    /// Whether no configured credential belongs to the server, so that nothing refreshes its posts.
    pub without_credential: bool,
    /// Why the last look-up had no answer, if it had none.
    pub failure: Option<String>,
}

/// The state of the ID service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdServiceStatus {
    /// The layout's name.
    pub layout: String,
    /// The node over all of its fields.
    pub node: u64,
    /// The end of the times that are recorded for the node.
    pub window_until_ms: i64,
}
