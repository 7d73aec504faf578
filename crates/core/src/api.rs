//! The APIs that upstreams speak.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The API that an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Mastodon's, which many servers speak.
    #[default]
    Mastodon,
    /// X's version 2.
    X,
    /// Twitter's version 1.1, which some servers still speak.
    Twitter,
}

impl Api {
    /// Its name in commands, in configuration and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mastodon => "mastodon",
            Self::X => "x",
            Self::Twitter => "twitter",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Api {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        [Self::Mastodon, Self::X, Self::Twitter]
            .into_iter()
            .find(|api| api.name() == text)
            .ok_or_else(|| ApiError(text.to_owned()))
    }
}

/// An unknown API name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid API {0:?}: expected mastodon, x (version 2) or twitter (version 1.1)")]
pub struct ApiError(String);
