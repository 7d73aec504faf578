//! The APIs of upstreams.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

/// The API of an upstream.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = ApiError, parse_err_fn = ApiError::new)]
pub enum Api {
    /// Mastodon's, which many servers provide.
    #[default]
    Mastodon,
    /// X's version 2.
    X,
    /// Twitter's version 1.1, which some servers still provide.
    Twitter,
}

impl Api {
    /// Its name in commands, in configuration and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An unknown API name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid API {0:?}: expected mastodon, x (version 2) or twitter (version 1.1)")]
pub struct ApiError(String);

impl ApiError {
    fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}
