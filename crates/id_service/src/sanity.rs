//! Checks that services which issue IDs next to each other do not conflict.
//!
//! Source: the service of 2010 asks each of its peers for worker, datacenter and time before it
//! registers itself. The protocol has no call for a peer's layout, so one of its IDs is decoded.

use std::{collections::HashSet, io, net::ToSocketAddrs as _, time::Duration};

use driftline_id::{FieldKind, Layout, Node};

use super::{
    Issuer,
    thrift::{Client, ClientError},
};

/// The answers of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, as `HOST:PORT`.
    pub address: String,
    /// Its worker.
    pub worker: i64,
    /// Its datacenter.
    pub datacenter: i64,
    /// Its clock in Unix ms.
    pub now_ms: i64,
    /// The own clock in Unix ms, halfway through the request for `now_ms`.
    pub own_now_ms: i64,
    /// An ID that it made.
    pub id: i64,
}

/// A conflict among services.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SanityError {
    /// A peer has the same node.
    #[error("the peer {address} has the node {node} too; give each service a node of its own")]
    SameNode {
        /// The peer.
        address: String,
        /// The node.
        node: u64,
    },
    /// Two peers have one node.
    #[error("two peers have the node {node}, one of them {address}; stop one of them")]
    SharedNode {
        /// The second of them.
        address: String,
        /// Their node.
        node: u64,
    },
    /// A peer is of another datacenter.
    #[error("the peer {address} is of the datacenter {theirs}, not {own}; name only peers of one")]
    Datacenter {
        /// The peer.
        address: String,
        /// Its datacenter.
        theirs: i64,
        /// The own datacenter.
        own: i64,
    },
    /// A peer has another layout.
    #[error(
        "an ID of the peer {address} does not read as one of the layout {layout} that its node \
         made just now; use one layout for all"
    )]
    Layout {
        /// The peer.
        address: String,
        /// The own layout.
        layout: &'static str,
    },
    /// The own clock, or several of the peers', is wrong.
    #[error("the clock is {offset_ms} ms off the mean of the peers' clocks; set it right")]
    Clock {
        /// The own clock less the mean of theirs, in ms.
        offset_ms: i64,
    },
}

impl Peer {
    /// Asks a peer. Blocks.
    ///
    /// # Errors
    /// The peer cannot be reached, or is no such service.
    pub fn ask(address: &str, issuer: &Issuer) -> Result<Self, ClientError> {
        let mut client = connect(address)?;
        let worker = client.call("get_worker_id", None)?;
        let datacenter = client.call("get_datacenter_id", None)?;
        let id = client.call("get_id", Some(AGENT))?;
        let before_us = issuer.now_us();
        let now_ms = client.call("get_timestamp", None)?;
        let own_now_us = before_us.midpoint(issuer.now_us());
        Ok(Self {
            address: address.to_owned(),
            worker,
            datacenter,
            now_ms,
            own_now_ms: own_now_us.div_euclid(1_000),
            id,
        })
    }

    /// The own clock less the peer's, in ms.
    pub const fn offset_ms(&self) -> i64 {
        self.own_now_ms.saturating_sub(self.now_ms)
    }

    /// The peer's node, if its ID decodes to this layout, the current time and its fields.
    fn node(&self, layout: &Layout) -> Option<u64> {
        let raw = u64::try_from(self.id).ok()?;
        let decoded = layout.decode(raw.into());
        let is_now = decoded.time_ms.abs_diff(self.now_ms) <= MAX_OFFSET_MS;
        let holds = |name: &str, value: i64| match decoded.field(name) {
            Some(found) => i64::try_from(found) == Ok(value),
            None => true,
        };
        if !is_now || !holds("worker", self.worker) || !holds("datacenter", self.datacenter) {
            return None;
        }
        let fields: Vec<(&str, u64)> = decoded
            .fields
            .iter()
            .filter(|value| value.field.kind() == FieldKind::Node)
            .filter_map(|value| Some((value.name(), u64::try_from(value.value).ok()?)))
            .collect();
        let node = Node::from_fields(layout, &fields).ok()?;
        Some(node.number())
    }
}

/// Connects to the first of a name's addresses that answers.
fn connect(address: &str) -> Result<Client, ClientError> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound).into();
    for address in address.to_socket_addrs()? {
        match Client::connect(address, TIMEOUT) {
            Ok(client) => return Ok(client),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Checks this service and its peers for conflicts.
///
/// # Errors
/// The first conflict.
pub fn check(issuer: &Issuer, peers: &[Peer]) -> Result<(), SanityError> {
    let (own_node, own_datacenter) = (issuer.node().number(), issuer.datacenter_id());
    let layout = issuer.layout();
    let mut nodes = HashSet::new();
    for peer in peers {
        let address = peer.address.clone();
        if peer.datacenter != own_datacenter {
            return Err(SanityError::Datacenter {
                address,
                theirs: peer.datacenter,
                own: own_datacenter,
            });
        }
        let Some(node) = peer.node(layout) else {
            return Err(SanityError::Layout {
                address,
                layout: layout.name(),
            });
        };
        if node == own_node {
            return Err(SanityError::SameNode {
                address,
                node: own_node,
            });
        }
        if !nodes.insert(node) {
            return Err(SanityError::SharedNode { address, node });
        }
    }
    match mean_offset_ms(peers) {
        Some(offset_ms) if offset_ms.unsigned_abs() > MAX_OFFSET_MS => {
            Err(SanityError::Clock { offset_ms })
        }
        _ => Ok(()),
    }
}

/// The own clock less the mean of the peers' clocks, in ms.
pub fn mean_offset_ms(peers: &[Peer]) -> Option<i64> {
    let sum: i128 = peers.iter().map(|peer| i128::from(peer.offset_ms())).sum();
    let mean = sum.checked_div(peers.len() as i128)?;
    i64::try_from(mean).ok()
}

/// As in the service of 2010.
const MAX_OFFSET_MS: u64 = 10_000;
const TIMEOUT: Duration = Duration::from_secs(3);
const AGENT: &str = "driftline-sanity-check";
