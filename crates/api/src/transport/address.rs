use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{header::HOST, request::Parts, uri::Authority},
};
use url::Url;

use super::ConnectionEnds;
use crate::App;

/// The server's own address as its clients write it.
#[derive(Clone, Debug)]
pub struct Address {
    /// Without a trailing slash.
    url: String,
    /// True if it is `public_url`, and not what a client says.
    is_public: bool,
}

impl Address {
    /// Returns the address of a server whose public address is not known.
    pub fn local() -> Self {
        Self {
            url: "http://localhost".to_owned(),
            is_public: false,
        }
    }

    /// Returns the address of a server with this `public_url`.
    pub fn public(base: &Url) -> Self {
        Self {
            url: base.as_str().trim_end_matches('/').to_owned(),
            is_public: true,
        }
    }

    /// Returns the address of a server with this `public_url`, or [`Address::local`] without one.
    pub fn configured(public_base: Option<&Url>) -> Self {
        public_base.map_or_else(Self::local, Self::public)
    }

    /// The URL of a path; without a host if the request named none.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The host and, if it is not the default, the port.
    pub(crate) fn domain(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        match rest.split('/').next() {
            None | Some("") => "localhost",
            Some(domain) => domain,
        }
    }

    /// The host by which other servers name this server's accounts; `None` without `public_url`.
    pub(crate) fn own_host(&self) -> Option<&str> {
        self.is_public.then(|| self.domain())
    }

    /// Where a client would look for streams.
    pub(crate) fn streaming(&self) -> String {
        let is_encrypted = self.url.starts_with("https:");
        let scheme = if is_encrypted { "wss" } else { "ws" };
        format!("{scheme}://{}", self.domain())
    }
}

impl FromRequestParts<Arc<App>> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let requested = || Self {
            url: request_host(parts).map_or_else(String::new, |host| format!("http://{host}")),
            is_public: false,
        };
        Ok(app
            .public_base
            .as_ref()
            .map_or_else(requested, Self::public))
    }
}

/// The server's origin, by which others may keep it: no client chooses it. Without a configured address it is where
/// the connection arrived.
pub(crate) struct OwnOrigin(pub(crate) String);

impl FromRequestParts<Arc<App>> for OwnOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let ends = parts.extensions.get::<ConnectionEnds>();
        Ok(Self(match &app.public_base {
            Some(base) => base.origin().ascii_serialization(),
            None => ends.map_or_else(String::new, |ends| format!("http://{}", ends.local)),
        }))
    }
}

fn request_host(parts: &Parts) -> Option<Authority> {
    let from_header = || parts.headers.get(HOST)?.to_str().ok()?.parse().ok();
    let host: Authority = parts.uri.authority().cloned().or_else(from_header)?;
    (!host.as_str().contains('@')).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_configured_address_has_a_host_by_which_others_name_accounts() {
        let base: Url = "https://own.example:8443/".parse().expect("a URL");
        let address = Address::configured(Some(&base));
        assert_eq!(address.own_host(), Some("own.example:8443"));
        assert_eq!(address.url("/@ann"), "https://own.example:8443/@ann");
        assert_eq!(Address::configured(None).own_host(), None);
    }
}
