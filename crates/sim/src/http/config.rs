//! The knobs of a simulated server.

use driftline_core::api::Api;

use crate::config::WorldConfig;

/// A server of several timelines, each a world of its own with this
/// configuration and a seed of its own; faults and budgets are shared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerConfig {
    /// Every timeline's world; its `start_ms`, `lane` and `only_author` are
    /// set by the server, and public and tag timelines show public posts
    /// only.
    pub world: WorldConfig,
    /// `list/1` to `list/N` exist; at most 900. Default 0.
    pub lists: u16,
    /// How long before the server's start publishing began. Default 0.
    pub history_ms: i64,
    /// The API that it speaks. Default Mastodon's. X's and Twitter's come
    /// with IDs of the Twitter layout; their rate limits are
    /// [`crate::FaultsConfig::x`] and [`crate::FaultsConfig::twitter`].
    pub api: Api,
    /// The keys that requests signed with OAuth 1.0a must be signed with, on
    /// X and Twitter. If there are none, any well-formed header will do.
    /// Default none.
    pub oauth1: Vec<OAuth1Keys>,
}

/// A consumer's and a user's keys of OAuth 1.0a.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth1Keys {
    /// `oauth_consumer_key`.
    pub consumer_key: String,
    /// Its secret.
    pub consumer_secret: String,
    /// `oauth_token`.
    pub token: String,
    /// Its secret.
    pub token_secret: String,
}

impl From<WorldConfig> for ServerConfig {
    fn from(world: WorldConfig) -> Self {
        Self {
            world,
            ..Self::default()
        }
    }
}
