//! The clients of upstreams.

use driftline_core::api::Api;
use driftline_net::HttpError;
use driftline_store::{
    Owner,
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
    /// The HTTP client cannot be built.
    #[error(transparent)]
    Http(#[from] HttpError),
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

/// A server, as clients of it are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server<'a> {
    /// The API that it speaks.
    pub api: Api,
    /// Its origin.
    pub origin: &'a str,
    /// Whether it may be in a private network, and be sent tokens over plain `http`, even if this
    /// process allows that of no other.
    pub allow_private: bool,
    /// For whom it is asked: private networks are the operator's alone.
    pub asker: Owner,
}

impl<'a> Server<'a> {
    /// The server of an instance, asked for that owner.
    pub fn of(instance: &'a Instance, allow_private: bool, asker: Owner) -> Self {
        Self {
            api: instance.api,
            origin: &instance.origin,
            allow_private,
            asker,
        }
    }
}

impl UpstreamAccess {
    /// A client of a server, with the token at that location.
    ///
    /// # Errors
    /// [`ClientError`]; it never holds the token.
    pub fn client(
        &self,
        server: Server<'_>,
        token: Option<&TokenLocation>,
    ) -> Result<Upstream, ClientError> {
        let address = Address::parse(server.origin)?;
        let secret = self.secret(token, server.origin)?;
        let http = match server.asker {
            Owner::Account(_) if !self.accounts_reach_private => self.http.guarded()?,
            Owner::Operator if server.allow_private => self.http.trusting(address.url())?,
            Owner::Operator | Owner::Account(_) => self.http.clone(),
        };
        Ok(Upstream::new(server.api, http, address, secret)?)
    }

    /// The client of a source, and the timeline that it reads.
    ///
    /// # Errors
    /// [`ClientError`]; it never holds the token.
    pub fn client_of(
        &self,
        server: Server<'_>,
        timeline: &str,
        token: Option<&TokenLocation>,
    ) -> Result<(Upstream, Timeline), ClientError> {
        let timeline: Timeline = timeline.parse()?;
        if token.is_none() && (timeline.needs_token() || server.api != Api::Mastodon) {
            return Err(ClientError::TokenNeeded(timeline.to_string()));
        }
        Ok((self.client(server, token)?, timeline))
    }
}

/// [`UpstreamAccess::client_of`] for a stored source.
pub(crate) fn client_of(
    source: &Source,
    access: &UpstreamAccess,
) -> Result<(Upstream, Timeline), ClientError> {
    let server = Server::of(&source.instance, source.allow_private, source.owner);
    access.client_of(server, &source.timeline, source.token.as_ref())
}
