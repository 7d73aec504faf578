//! Posts as they are exported, and which of them are.

use clap::ValueEnum;
use driftline_core::feed::ChangeKind;
use driftline_server::admin::PostRecord;
use serde::{Deserialize, Serialize};

/// A post of a source, or a change of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What happened.
    pub event: ChangeKind,
    /// The source's name.
    pub source: String,
    /// The entry and its post.
    #[serde(flatten)]
    pub post: PostRecord,
}

/// A time of a post.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeOf {
    /// When it was stored.
    #[default]
    Stored,
    /// When its author says that it was written.
    Written,
}

/// Which posts are exported, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// From then on, Unix ms.
    pub since_ms: Option<i64>,
    /// Before then, Unix ms.
    pub until_ms: Option<i64>,
    /// Which time of a post these are about.
    pub by: TimeOf,
    /// Only posts that match this predicate, in its canonical form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<String>,
    /// Whether deleted posts are whole.
    pub deleted: bool,
}

impl Filter {
    pub(super) fn takes(&self, post: &PostRecord) -> bool {
        let at_ms = match self.by {
            TimeOf::Stored => Some(post.arrived_at_ms),
            TimeOf::Written => post.created_at_ms,
        };
        let is_since = |since_ms| at_ms.is_some_and(|at_ms| at_ms >= since_ms);
        let is_until = |until_ms| at_ms.is_some_and(|at_ms| at_ms < until_ms);
        self.since_ms.is_none_or(is_since) && self.until_ms.is_none_or(is_until)
    }
}
