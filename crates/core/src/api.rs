//! The APIs that upstreams speak.

named_enum! {
    /// The API that an upstream speaks.
    #[derive(Default)]
    #[strum(parse_err_ty = ApiError, parse_err_fn = ApiError::of)]
    pub enum Api: "lowercase" {
        /// Mastodon's, which many servers speak.
        #[default]
        Mastodon,
        /// X's version 2.
        X,
        /// Twitter's version 1.1, which some servers still speak.
        Twitter,
    }
}

/// An unknown API name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid API {0:?}: expected mastodon, x (version 2) or twitter (version 1.1)")]
pub struct ApiError(String);

impl ApiError {
    fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}
