//! The policy of the client.

use std::time::Duration;

/// The rules for connections and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// True if connections to private networks are allowed, and tokens may be sent over plain
    /// `http`.
    pub allow_private: bool,
    /// The limit for resolving, connecting and the TLS handshake.
    pub connect_timeout: Duration,
    /// The longest time without an arriving byte.
    pub read_timeout: Duration,
    /// The limit for a request with its redirects and its whole body.
    pub total_timeout: Duration,
    /// The longest time without an arriving byte on a stream. Servers send heartbeats every 15 to
    /// 30 s. The reader of the stream must apply this limit.
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
