//! The clients of upstreams.

use driftline_core::api::Api;
use driftline_store::{
    instance::Instance,
    source::{Source, TokenLocation},
};
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

impl UpstreamAccess {
    /// A client of the upstream of this origin, with the token at that location.
    ///
    /// # Errors
    /// [`ClientError`]; it never holds the token.
    pub fn client(
        &self,
        api: Api,
        origin: &str,
        token: Option<&TokenLocation>,
    ) -> Result<Upstream, ClientError> {
        let address = Address::parse(origin)?;
        let secret = self.secret(token, origin)?;
        Ok(Upstream::new(api, self.http.clone(), address, secret)?)
    }

    /// The client of a source, and the timeline that it reads.
    ///
    /// # Errors
    /// [`ClientError`]; it never holds the token.
    pub fn client_of(
        &self,
        api: Api,
        origin: &str,
        timeline: &str,
        token: Option<&TokenLocation>,
    ) -> Result<(Upstream, Timeline), ClientError> {
        let timeline: Timeline = timeline.parse()?;
        if token.is_none() && (timeline.needs_token() || api != Api::Mastodon) {
            return Err(ClientError::TokenNeeded(timeline.to_string()));
        }
        Ok((self.client(api, origin, token)?, timeline))
    }
}

/// [`UpstreamAccess::client_of`] for a stored source.
pub(crate) fn client_of(
    source: &Source,
    access: &UpstreamAccess,
) -> Result<(Upstream, Timeline), ClientError> {
    let Instance { api, origin, .. } = &source.instance;
    access.client_of(*api, origin, &source.timeline, source.token.as_ref())
}
