//! The formats of the log.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON a line.
    Json,
}
