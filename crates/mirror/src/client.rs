//! The upstream client of a stored source.

use driftline_core::api::Api;
use driftline_store::source::{NewSource, Source, TokenLocation};
use driftline_upstream::{Address, AddressError, Timeline, TimelineError, TokenError, Upstream};

use crate::{secrets::SecretsError, upstream_access::UpstreamAccess};

/// Why a source has no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The stored address is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The stored timeline is invalid.
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    /// The token cannot be sent.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is not available.
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
pub fn client_of(
    source: &Source,
    access: &UpstreamAccess,
) -> Result<(Upstream, Timeline), ClientError> {
    let instance = (source.instance.api, &*source.instance.origin);
    let token = source.token.as_ref();
    client(&source.upstream, &source.timeline, instance, token, access)
}

/// [`client_of`] for a source that is not stored yet.
///
/// # Errors
/// [`ClientError`]; it never holds the token.
pub fn client_of_new(
    new: &NewSource,
    access: &UpstreamAccess,
) -> Result<(Upstream, Timeline), ClientError> {
    let instance = (new.api, &*new.origin);
    let token = new.token.as_ref();
    client(&new.upstream, &new.timeline, instance, token, access)
}

fn client(
    upstream: &str,
    timeline: &str,
    (api, origin): (Api, &str),
    token: Option<&TokenLocation>,
    access: &UpstreamAccess,
) -> Result<(Upstream, Timeline), ClientError> {
    let address = Address::parse(upstream)?;
    let timeline: Timeline = timeline.parse()?;
    if token.is_none() && (timeline.needs_token() || api != Api::Mastodon) {
        return Err(ClientError::TokenNeeded(timeline.to_string()));
    }
    let secret = access.secret(token, origin)?;
    let client = Upstream::new(api, access.http.clone(), address, secret)?;
    Ok((client, timeline))
}
