use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::App;

/// The other end of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Where a request comes from. Behind a proxy, which a `public_url` says that there is and which has to be on
/// this machine, it is what the proxy says (the last address of `X-Forwarded-For`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<Arc<App>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<PeerAddress>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        if !peer.to_canonical().is_loopback() || app.public_base.is_none() {
            return Ok(Self(peer));
        }
        let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back();
        let last = forwarded
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.rsplit(',').next());
        let client = last.and_then(|text| text.trim().parse().ok());
        Ok(Self(client.unwrap_or(peer)))
    }
}
