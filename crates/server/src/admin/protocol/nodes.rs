//! Requests about the processes that share the work.

use serde::{Deserialize, Serialize};

/// List the processes that share the work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListNodes;

/// A process that shares the work, or did within the last hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: NodeState,
    /// Its weight.
    pub share: u32,
    /// Whether it is to give up all work.
    pub draining: bool,
    /// How many sources it reads.
    pub sources: u64,
    /// How many buckets of due times it looks at.
    pub buckets: u64,
    /// Sources that it cannot read now.
    pub refused_sources: u64,
    /// Since when it has taken part, Unix ms by the database's clock.
    pub since_ms: i64,
    /// When it was last seen, Unix ms by the database's clock.
    pub seen_ms: i64,
    /// How long ago that is.
    pub seen_ago_ms: i64,
    /// Its program's version.
    pub version: String,
}

/// What a process that shares the work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It takes its share.
    Active,
    /// Its share is 0: it serves readers.
    NoShare,
    /// It gives up its sources.
    Draining,
    /// It has given up all work.
    Drained,
    /// It has ended in order.
    Left,
    /// It has not been seen for longer than its lease lasts.
    Vanished,
}

impl std::fmt::Display for NodeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::NoShare => "no share",
            Self::Draining => "draining",
            Self::Drained => "drained",
            Self::Left => "left",
            Self::Vanished => "vanished",
        })
    }
}

/// Let a process give up all work, or take its share again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrainNode {
    /// Its name, or the beginning of it.
    pub name: String,
    /// Whether it is to give up all work.
    pub draining: bool,
}

/// A process was asked to give up its work, or to take its share again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainedNode {
    /// Its whole name.
    pub name: String,
    /// Whether it is to give up all work.
    pub draining: bool,
    /// Whether that is new.
    pub changed: bool,
    /// What it did before.
    pub state: NodeState,
    /// How many other processes take part.
    pub others: u64,
}
