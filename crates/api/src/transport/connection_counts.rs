//! The number of connections of each address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use parking_lot::Mutex;

use super::TrustedProxies;

/// The connections of each address. A limit keeps one address from taking all of them.
#[derive(Debug)]
pub(super) struct ConnectionCounts {
    /// The most for one address.
    most: usize,
    /// Not limited: each brings many clients.
    proxies: TrustedProxies,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted, until it is dropped.
#[derive(Debug)]
pub(super) struct CountedConnection {
    counts: Arc<ConnectionCounts>,
    /// `None` for one that is not limited.
    address: Option<IpAddr>,
}

impl ConnectionCounts {
    /// Counts with that limit for each address but those of proxies.
    pub(super) fn new(most: usize, proxies: TrustedProxies) -> Arc<Self> {
        Arc::new(Self {
            most,
            proxies,
            counts: Mutex::default(),
        })
    }

    /// Counts a connection from an address; `None` if it has as many as it may. What comes from this machine or
    /// another proxy is not limited.
    pub(super) fn count(self: &Arc<Self>, address: IpAddr) -> Option<CountedConnection> {
        let address = address.to_canonical();
        let counted = |address| CountedConnection {
            counts: Arc::clone(self),
            address,
        };
        if self.proxies.contains(address) {
            return Some(counted(None));
        }
        let network = network(address);
        let mut counts = self.counts.lock();
        let count = counts.get(&network).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        counts.insert(network, count + 1);
        Some(counted(Some(network)))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let Some(address) = self.address else {
            return;
        };
        let mut counts = self.counts.counts.lock();
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

/// The smallest network that belongs to one client: an IPv4 address, or the first 64 bits of an IPv6 address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn counts_up_to(most: usize) -> Arc<ConnectionCounts> {
        ConnectionCounts::new(most, TrustedProxies::default())
    }

    #[test]
    fn an_address_has_no_more_than_its_share_and_gets_it_back() {
        let counts = counts_up_to(2);
        let first = counts.count(address("192.0.2.1"));
        let second = counts.count(address("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(counts.count(address("192.0.2.1")).is_none());
        assert!(counts.count(address("192.0.2.2")).is_some());
        drop(first);
        assert!(counts.count(address("192.0.2.1")).is_some());
        drop(second);
        assert!(counts.counts.lock().is_empty());
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        let counts = counts_up_to(1);
        let _one = counts.count(address("2001:db8::1"));
        assert!(counts.count(address("2001:db8::ffff:2")).is_none());
        assert!(counts.count(address("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn proxies_have_no_share() {
        let proxies = TrustedProxies::parse(&["192.0.2.0/30".to_owned()]).unwrap();
        let counts = ConnectionCounts::new(0, proxies);
        for proxy in ["127.0.0.1", "::1", "::ffff:127.0.0.2", "192.0.2.3"] {
            assert!(counts.count(address(proxy)).is_some(), "{proxy}");
        }
        assert!(counts.count(address("192.0.2.4")).is_none());
    }
}
