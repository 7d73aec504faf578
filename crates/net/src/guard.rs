//! The guard against addresses inside private networks. A person who may name a server must not
//! reach, through this process, servers that only this process can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// A host that has only private addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} leads to a private address ({address}), which is not allowed")]
pub struct PrivateAddressError {
    /// The host.
    pub host: String,
    /// The first of its addresses.
    pub address: IpAddr,
}

/// Checks a host that is written as an address, because the client connects to it without the
/// resolver.
pub(crate) fn check_literal(url: &Url, allow_private: bool) -> Result<(), PrivateAddressError> {
    let address = match url.host() {
        Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
        Some(Host::Ipv6(v6)) => IpAddr::V6(v6),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    if !allow_private && is_private(address) {
        return Err(PrivateAddressError {
            host: address.to_string(),
            address,
        });
    }
    Ok(())
}

/// A resolver that returns only permitted addresses, so that the checked address is the one used.
#[derive(Debug)]
pub(crate) struct GuardedResolver {
    pub(crate) allow_private: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed = allowed(name.as_str(), found.collect(), allow_private)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

fn allowed(
    host: &str,
    mut found: Vec<SocketAddr>,
    allow_private: bool,
) -> Result<Vec<SocketAddr>, PrivateAddressError> {
    let first = found.first().map(SocketAddr::ip);
    found.retain(|address| allow_private || !is_private(address.ip()));
    match first {
        Some(address) if found.is_empty() => Err(PrivateAddressError {
            host: host.to_owned(),
            address,
        }),
        _ => Ok(found),
    }
}

/// True if an address is in no public network. That covers loopback, private, link-local, shared
/// (CGNAT), unspecified, multicast, broadcast, metadata services, documentation and benchmarks, and
/// every IPv6 form of these.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    PRIVATE_V4.iter().any(|&(network, prefix)| {
        let mask = u32::MAX << (32 - prefix);
        u32::from(address) & mask == u32::from(network)
    })
}

/// Only global unicast (2000::/3) without its reserved parts is public. If an IPv4 address is
/// embedded, that address decides.
fn is_private_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match [a, b, c, d, e, f] {
        // v4-mapped, and NAT64 of RFC 6052.
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => is_private_v4(v4(g, h)),
        // 6to4.
        [0x2002, high, low, ..] => is_private_v4(v4(high, low)),
        // Teredo, benchmarks, ORCHID and other special purposes.
        [0x2001, 0..=0x01ff, ..] => true,
        // Documentation.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => true,
        _ => a & 0xe000 != 0x2000,
    }
}

const PRIVATE_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's metadata and host service.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local, with the metadata services of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of the private ranges.
    const PRIVATE: &str = "
        0.0.0.0 0.255.255.255
        10.0.0.0 10.255.255.255
        100.64.0.0 100.100.100.200 100.127.255.255
        127.0.0.1 127.255.255.255
        168.63.129.16
        169.254.0.0 169.254.169.254
        172.16.0.0 172.31.255.255
        192.0.0.192 192.0.2.1
        192.168.0.0 192.168.255.255
        198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.7
        224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
        :: ::1 ::127.0.0.1 ::8.8.8.8
        ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
        64:ff9b::192.168.0.1 64:ff9b::7f00:1 64:ff9b:1::808:808
        100::1
        2001::1 2001:2::1 2001:10::1 2001:1ff:ffff::1 2001:db8::1
        2002:7f00:1:: 2002:a9fe:a9fe::1 2002:c0a8:1::1
        3fff::1 3fff:fff::1 4000::1 5f00::1
        fc00::1 fd00:ec2::254 fdff::1
        fe80::1 febf::1 fec0::1 ff02::1";
    /// The public neighbours of the private ranges.
    const PUBLIC: &str = "
        1.0.0.0 8.8.8.8
        9.255.255.255 11.0.0.0
        100.63.255.255 100.128.0.0
        126.255.255.255 128.0.0.0
        169.253.255.255 169.255.0.0
        172.15.255.255 172.32.0.0
        192.167.255.255 192.169.0.0
        198.17.255.255 198.20.0.0
        223.255.255.255
        ::ffff:8.8.8.8 64:ff9b::8.8.8.8
        2001:200::1 2001:4860:4860::8888 2002:808:808::1
        2606:4700::1111 2a01:4f8::1 3fff:1000::1";

    #[test]
    fn private_addresses_at_both_ends_of_their_ranges_and_public_ones_next_to_them() {
        for (addresses, private) in [(PRIVATE, true), (PUBLIC, false)] {
            for address in addresses.split_whitespace() {
                let parsed = address.parse().expect("an address");
                assert_eq!(is_private(parsed), private, "{address}");
            }
        }
    }

    #[test]
    fn hosts_written_as_addresses_are_checked_in_every_spelling() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let url = Url::parse(url).expect("a URL");
            assert!(check_literal(&url, false).is_err(), "{url}");
            assert!(check_literal(&url, true).is_ok(), "{url}");
        }
        let public = Url::parse("https://8.8.8.8/").expect("a URL");
        assert!(check_literal(&public, false).is_ok());
    }

    #[test]
    fn of_mixed_answers_only_the_public_addresses_stay() {
        let public = SocketAddr::from(([8, 8, 8, 8], 0));
        let private = SocketAddr::from(([10, 0, 0, 1], 0));
        let of = |found: &[SocketAddr], all| allowed("a.example", found.to_vec(), all);
        assert_eq!(of(&[private, public], false), Ok(vec![public]));
        assert_eq!(of(&[private, public], true), Ok(vec![private, public]));
        assert_eq!(of(&[], false), Ok(vec![]));
        let message = of(&[private], false)
            .expect_err("none is public")
            .to_string();
        for part in ["a.example", "10.0.0.1"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
