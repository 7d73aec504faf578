//! The APIs of upstreams.

named_enum! {
    /// The API of an upstream.
    #[derive(Default)]
    #[strum(parse_err_ty = ApiError, parse_err_fn = ApiError::new)]
    pub enum Api: "lowercase" {
        /// Mastodon's, which many servers provide.
        #[default]
        Mastodon,
        /// X's version 2.
        X,
        /// Twitter's version 1.1, which some servers still provide.
        Twitter,
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
