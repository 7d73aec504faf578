//! The knobs of a simulated server.

use serde::{Deserialize, Serialize};

use crate::config::WorldConfig;

/// A server of several timelines, each a world of its own with this
/// configuration and a seed of its own; faults and budgets are shared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Every timeline's world; its `start_ms`, `lane` and `only_author` are
    /// set by the server, and public and tag timelines show public posts
    /// only.
    pub world: WorldConfig,
    /// `list/1` to `list/N` exist; at most 900. Default 0.
    pub lists: u16,
    /// How long before the server's start publishing began. Default 0.
    pub history_ms: i64,
}

impl From<WorldConfig> for ServerConfig {
    fn from(world: WorldConfig) -> Self {
        Self {
            world,
            ..Self::default()
        }
    }
}
