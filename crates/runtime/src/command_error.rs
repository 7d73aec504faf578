//! Why a command of the operator fails.

use std::fmt::Display;

use driftline_store::StoreError;
use serde::{Deserialize, Serialize};

/// Why a command failed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CommandError {
    /// What was wrong and what to do.
    pub message: String,
    /// Whether the command itself was wrong, so that retrying is useless.
    pub usage: bool,
    /// Whether the database refused the log-in, or the system access to its file.
    #[serde(default)]
    pub denied: bool,
    /// Whether the store as a whole fails, so that retrying later may help.
    #[serde(default)]
    pub outage: bool,
}

impl CommandError {
    /// The command itself is wrong.
    pub fn usage(error: impl Display) -> Self {
        Self {
            message: error.to_string(),
            usage: true,
            denied: false,
            outage: false,
        }
    }

    /// The command is right and could not be executed.
    pub fn failed(error: impl Display) -> Self {
        Self {
            message: error.to_string(),
            usage: false,
            denied: false,
            outage: false,
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let (denied, outage) = (error.is_denied(), error.is_outage());
        Self {
            denied,
            outage,
            ..Self::failed(error)
        }
    }
}
