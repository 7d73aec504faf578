use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;

/// The proxies before this server: those on this machine, and those that the operator names. Their number of
/// connections has no limit, and with a `public_url` their `X-Forwarded-For` says who the client is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[IpNet]>);

/// A text that names no proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid proxy {0:?}: expected an address such as 10.0.0.2, or a network such as 10.0.0.0/24"
)]
pub struct TrustedProxiesError(String);

impl TrustedProxies {
    /// Parses addresses and networks.
    ///
    /// # Errors
    /// [`TrustedProxiesError`] with the first text that is neither.
    pub fn parse(texts: &[String]) -> Result<Self, TrustedProxiesError> {
        let parse = |text: &String| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            let network = address.or_else(|_| text.parse::<IpNet>());
            network.map_err(|_| TrustedProxiesError(text.clone()))
        };
        texts.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a proxy may have that address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request that came from `peer`: behind proxies the last address of `forwarded` (the
    /// addresses of `X-Forwarded-For`) that is not a proxy's.
    pub(super) fn client<'h>(
        &self,
        peer: IpAddr,
        forwarded: impl DoubleEndedIterator<Item = &'h str>,
    ) -> IpAddr {
        let mut client = peer;
        for text in forwarded.rev() {
            if !self.contains(client) {
                break;
            }
            let Ok(before) = text.trim().parse() else {
                break;
            };
            client = before;
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(texts: &[&str]) -> Result<TrustedProxies, TrustedProxiesError> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        TrustedProxies::parse(&texts)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn proxies_are_addresses_and_networks_and_this_machine() {
        let proxies = proxies(&["192.0.2.7", "10.1.0.0/16", "2001:db8::/64"]).unwrap();
        for proxy in [
            "127.0.0.1",
            "::1",
            "192.0.2.7",
            "::ffff:192.0.2.7",
            "10.1.2.3",
            "2001:db8::9",
        ] {
            assert!(proxies.contains(address(proxy)), "{proxy}");
        }
        for other in ["192.0.2.8", "10.2.0.1", "2001:db8:0:1::9"] {
            assert!(!proxies.contains(address(other)), "{other}");
        }
    }

    #[test]
    fn a_text_that_is_no_proxy_is_named() {
        for text in ["proxy.example", "10.0.0.0/33", ""] {
            let error = proxies(&["10.0.0.1", text]).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_before_the_proxies() {
        let proxies = proxies(&["10.0.0.2"]).unwrap();
        let client = |peer: &str, forwarded: &str| {
            let client = proxies.client(address(peer), forwarded.split(','));
            client.to_string()
        };
        let forged = "198.51.100.9, 203.0.113.5";
        assert_eq!(client("127.0.0.1", forged), "203.0.113.5");
        assert_eq!(client("127.0.0.1", "203.0.113.5, 10.0.0.2"), "203.0.113.5");
        assert_eq!(client("192.0.2.1", forged), "192.0.2.1", "no proxy");
        assert_eq!(client("10.0.0.2", "203.0.113.5, unknown"), "10.0.0.2");
        assert_eq!(client("10.0.0.2", ""), "10.0.0.2");
    }
}
