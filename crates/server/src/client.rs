//! The upstream client of a stored source.

use driftline_store::source::{Source, TokenPlace};
use driftline_upstream::{
    Address, AddressError, Http, Mastodon, Timeline, TimelineError, TokenError,
};
use secrecy::SecretString;

/// Why a source has no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The stored address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The stored timeline is none.
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    /// The token cannot be sent.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The environment does not hold the token.
    #[error(
        "the environment variable {0} with the source's token is not set; set it and start again"
    )]
    NoVariable(String),
    /// The file with the token cannot be read.
    #[error("the file {path} with the source's token cannot be read: {reason}")]
    NoFile {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The timeline cannot be read without a token.
    #[error("the timeline {0} needs a token: add the source with --token-env or --token-file")]
    TokenNeeded(String),
}

/// The client of a source and the timeline that it reads.
///
/// # Errors
/// [`ClientError`]; it never holds the token.
pub fn client_of(source: &Source, http: &Http) -> Result<(Mastodon, Timeline), ClientError> {
    let address = Address::parse(&source.upstream)?;
    let timeline: Timeline = source.timeline.parse()?;
    let token = source.token.as_ref().map(read_token).transpose()?;
    if token.is_none() && timeline.needs_token() {
        return Err(ClientError::TokenNeeded(timeline.to_string()));
    }
    Ok((Mastodon::new(http.clone(), address, token)?, timeline))
}

fn read_token(place: &TokenPlace) -> Result<SecretString, ClientError> {
    let text = match place {
        TokenPlace::Environment(name) => {
            std::env::var(name).map_err(|_| ClientError::NoVariable(name.clone()))?
        }
        TokenPlace::File(path) => {
            std::fs::read_to_string(path).map_err(|error| ClientError::NoFile {
                path: path.clone(),
                reason: error.to_string(),
            })?
        }
    };
    Ok(SecretString::from(text.trim().to_owned()))
}
