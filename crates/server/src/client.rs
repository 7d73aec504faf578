//! The upstream client of a stored source.

use driftline_core::api::Api;
use driftline_store::source::Source;
use driftline_upstream::{Address, AddressError, Timeline, TimelineError, TokenError, Upstream};

use crate::{access::Access, secrets::SecretsError};

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
    /// The token cannot be had.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The timeline cannot be read without a token.
    #[error("the timeline {0} needs a token: add the source with --token-env or --token-file")]
    TokenNeeded(String),
}

/// The client of a source and the timeline that it reads.
///
/// # Errors
/// [`ClientError`]; it never holds the token.
pub fn client_of(source: &Source, access: &Access) -> Result<(Upstream, Timeline), ClientError> {
    let address = Address::parse(&source.upstream)?;
    let timeline: Timeline = source.timeline.parse()?;
    let api = source.instance.api;
    if source.token.is_none() && (timeline.needs_token() || api != Api::Mastodon) {
        return Err(ClientError::TokenNeeded(timeline.to_string()));
    }
    let secret = access.secret(source.token.as_ref(), &source.instance.origin)?;
    let client = Upstream::new(api, access.http.clone(), address, secret)?;
    Ok((client, timeline))
}
