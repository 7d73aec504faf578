//! The errors of the operator's commands.

use std::fmt::Display;

use driftline_store::StoreError;
use serde::{Deserialize, Serialize};

/// A command that failed and changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct CommandError {
    /// The problem and its remedy.
    pub message: String,
    /// True if the command itself was wrong, so that a retry is useless.
    pub usage: bool,
    /// True if the database rejected the log-in, or the system denied access to its file.
    #[serde(default)]
    pub denied: bool,
    /// True if the whole store fails, so that a later retry may help.
    #[serde(default)]
    pub outage: bool,
}

impl CommandError {
    /// An error in the command itself.
    pub fn usage(error: impl Display) -> Self {
        Self {
            message: error.to_string(),
            usage: true,
            denied: false,
            outage: false,
        }
    }

    /// A valid command that could not be executed.
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
