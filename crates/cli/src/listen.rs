//! Addresses to listen on.

use std::net::SocketAddr;

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

/// Lets the process have as many open files as the system allows it: each client is one.
pub fn raise_file_limit() {
    #[cfg(unix)]
    if let Err(error) = rlimit::increase_nofile_limit(rlimit::INFINITY) {
        tracing::info!(%error, "the limit of open files stays as it is");
    }
}
