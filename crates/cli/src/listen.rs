//! Addresses to listen on.

use std::net::SocketAddr;

use driftline_server::http;
use tokio::net::TcpListener;

use crate::error::CliError;

/// Reads an address.
///
/// # Errors
/// [`CliError::Usage`] if it is none; `usual` shows how it is written.
pub fn address(text: &str, usual: SocketAddr) -> Result<SocketAddr, CliError> {
    let numbers = text.replacen("localhost:", "127.0.0.1:", 1);
    numbers.parse().map_err(|_| {
        CliError::usage(format!(
            "{text:?} is no address to listen on; write it as {usual}"
        ))
    })
}

/// Listens on an address.
///
/// # Errors
/// [`CliError::Failed`] naming the address and the flag that changes it.
pub async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::failed(format!(
            "{address} cannot be listened on: {error}; choose another address with {flag}"
        ))
    })
}

/// What HTTP clients may take of this process.
pub fn http_limits() -> http::Limits {
    http::Limits {
        connections: room().http,
        ..http::Limits::default()
    }
}

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Over HTTP.
    pub http: usize,
    /// Over Thrift.
    pub thrift: usize,
}

/// Lets the process have as many open files as the system allows it, and shares them out: what
/// records windows and posts needs some however many clients there are.
pub fn room() -> Room {
    let files = open_files().saturating_sub(RESERVED_FILES);
    Room {
        http: (files / 3).clamp(1, MAX_HTTP),
        thrift: (files / 3 * 2).clamp(1, MAX_THRIFT),
    }
}

#[cfg(unix)]
fn open_files() -> usize {
    match rlimit::increase_nofile_limit(rlimit::INFINITY) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::info!(%error, "the limit of open files stays as it is");
            DEFAULT_FILES
        }
    }
}

#[cfg(not(unix))]
fn open_files() -> usize {
    usize::MAX
}

const RESERVED_FILES: usize = 128;
const MAX_HTTP: usize = 2_000;
const MAX_THRIFT: usize = 10_000;
#[cfg(unix)]
const DEFAULT_FILES: usize = 256;
