use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::App;

/// Both ends of a request's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionEnds {
    /// The other end.
    pub(crate) peer: IpAddr,
    /// This server's address, as the connection was made to it.
    pub(crate) local: SocketAddr,
}

/// Where a request comes from. Behind [proxies](super::TrustedProxies), which a `public_url` says that there are, it is
/// what they say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<Arc<App>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let ends = parts.extensions.get::<ConnectionEnds>();
        let peer = ends.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ends| ends.peer);
        if app.public_base.is_none() {
            return Ok(Self(peer));
        }
        let forwarded: Vec<&str> = parts
            .headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(','))
            .collect();
        Ok(Self(app.proxies.client(peer, forwarded.into_iter())))
    }
}
