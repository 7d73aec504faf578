//! Addresses to listen on, and HTTP on them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use axum::Router;
use driftline_api::transport::{self, Limits, TrustedProxies};
use tokio::{net::TcpListener, sync::oneshot};

use crate::error::CliError;

/// Where `serve` listens by default.
pub const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7171);

/// Reads an address.
///
/// # Errors
/// [`CliError::Usage`] if it is invalid; the message shows `default` as an example.
pub fn address(text: &str, default: SocketAddr) -> Result<SocketAddr, CliError> {
    let numbers = text.replacen("localhost:", "127.0.0.1:", 1);
    numbers.parse().map_err(|_| {
        CliError::usage(format!(
            "invalid listen address {text:?}: expected one such as {default}"
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

/// Serves HTTP until `ending` is over; requests in flight are answered.
///
/// # Errors
/// Those of `ending`, or [`CliError::Failed`] if the listener broke.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    proxies: TrustedProxies,
    ending: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    let limits = Limits {
        connections: (open_files() / 3).clamp(1, MAX_HTTP),
        proxies,
        ..Limits::default()
    };
    let (end, ended) = oneshot::channel::<()>();
    let ended = async {
        let _ = ended.await;
    };
    let serving = transport::serve(listener, router, limits, ended);
    let ending = async {
        let outcome = ending.await;
        drop(end);
        outcome
    };
    let (served, outcome) = tokio::join!(serving, ending);
    outcome.and(served.map_err(|error| broke(&error)))
}

/// The error of a listener.
pub fn broke(error: &io::Error) -> CliError {
    CliError::failed(format!("HTTP broke: {error}"))
}

/// The largest number of open connections over Thrift.
pub fn thrift_connections() -> usize {
    (open_files() / 3 * 2).clamp(1, MAX_THRIFT)
}

/// Raises the limit of open files to what the system allows, for clients over HTTP and Thrift to share.
/// Some are reserved: windows and posts are recorded however many clients there are.
fn open_files() -> usize {
    let files = match rlimit::increase_nofile_limit(rlimit::INFINITY) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::info!(%error, "the limit of open files stays as it is");
            DEFAULT_FILES
        }
    };
    files.saturating_sub(RESERVED_FILES)
}

const RESERVED_FILES: usize = 128;
const MAX_HTTP: usize = 2_000;
const MAX_THRIFT: usize = 10_000;
const DEFAULT_FILES: usize = 256;
