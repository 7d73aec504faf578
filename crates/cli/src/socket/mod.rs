//! The local socket through which the command line reaches the process that
//! holds the data folder.
//!
//! One line of JSON in, a [`Call`]; one line out, an [`Answer`]; as many pairs as the client likes.

mod client;
mod server;

pub use client::Client;
pub use server::Listening;

use driftline_core::social::AccountName;
use driftline_runtime::CommandError;
use serde::{Deserialize, Serialize};

/// A call's line: a request to a process of the same version.
#[derive(Debug, Serialize, Deserialize)]
struct Call<R> {
    /// The caller's version of driftline.
    version: String,
    /// The request's [`driftline_server::admin::Request::NAME`].
    command: String,
    /// As whom it is executed; without one as the operator.
    account: Option<AccountName>,
    request: R,
}

/// An answer's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer<R> {
    Ok(R),
    Error(CommandError),
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longer lines are no commands.
const MAX_COMMAND: u64 = 1024 * 1024;
