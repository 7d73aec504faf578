//! The local socket through which the command line reaches the process that
//! holds the data folder.
//!
//! One line of JSON in, an [`driftline_server::admin::Command`]; one line out,
//! `{"ok": value}` or `{"error": CommandError}`; as many pairs as the client
//! likes.

mod client;
mod server;

pub use client::Client;
pub use server::Listening;

use driftline_runtime::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An answer's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error(CommandError),
}

/// Longer lines are no commands.
const MAX_COMMAND: u64 = 1024 * 1024;
