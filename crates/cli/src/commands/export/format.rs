//! What is written of posts and attachments, and how.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How posts are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    #[default]
    Jsonl,
    /// Comma-separated values, with the names of the columns first.
    Csv,
    /// Apache Parquet; needs --out.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// How names of files of it end.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }
}

/// What is exported of attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaMode {
    /// A line for each.
    List,
    /// Also the file behind its address.
    Fetch,
}
