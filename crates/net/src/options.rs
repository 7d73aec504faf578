//! The policy of the client.

use std::time::Duration;

/// How servers are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether addresses of private networks may be connected to, and tokens
    /// may travel over plain `http`.
    pub allow_private: bool,
    /// The most that resolving, connecting and the TLS handshake may take.
    pub connect_timeout: Duration,
    /// The most that may pass without a byte arriving.
    pub read_timeout: Duration,
    /// The most that a request may take, with redirects and its whole body.
    pub total_timeout: Duration,
    /// The most that may pass on a stream without a byte arriving; servers
    /// send heartbeats every 15 to 30 s. Whoever reads the stream keeps it.
    pub silence_timeout: Duration,
    /// The largest body that is read, in bytes after decompression.
    pub max_body_bytes: usize,
    /// The `User-Agent` header.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_private: false,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(60),
            silence_timeout: Duration::from_secs(90),
            max_body_bytes: 8 * 1024 * 1024,
            user_agent: concat!(
                "Driftline/",
                env!("CARGO_PKG_VERSION"),
                " (+",
                env!("CARGO_PKG_REPOSITORY"),
                ")"
            )
            .to_owned(),
        }
    }
}
