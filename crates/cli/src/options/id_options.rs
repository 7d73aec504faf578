//! The options of ID layouts and nodes, and the ID service that they configure.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use driftline_id::{
    ClockPolicy, Layout, Node, clock::SystemClock, file::FileError, window::WindowConfig,
};
use driftline_id_service::{
    HeldNodeError, NodeChoice, RunningIdService, Service, ServiceError, Settings, SharedClock,
    thrift,
};
use driftline_store::{Store, node_lease::NodeLeases};
use tokio::{net::lookup_host, sync::watch};

use super::id_place::{LeaseStore, NodeText};
use crate::{
    config::IdSection, data_dir::holder_name, duration::HumanMs, error::CliError, listen, parse,
};

/// The layout of IDs and the node that makes them.
#[derive(Debug, Clone, Default, Args)]
pub struct IdOptions {
    /// The layout of the IDs [default: twitter].
    #[arg(long, value_name = "NAME", value_parser = parse::layout)]
    pub layout: Option<Layout>,
    /// The layout's time zero, if not the default, in Unix ms.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub epoch_ms: Option<i64>,
    /// The node: its number over all node fields, or as datacenter=1,worker=5.
    /// No other machine may have it.
    #[arg(long, value_name = "NODE", conflicts_with = "lease")]
    pub node: Option<NodeText>,
    /// Take the lowest free node: of the data folder, or of the
    /// store that several machines share.
    #[arg(long, value_name = "PLACE")]
    pub lease: Option<LeaseStore>,
}

impl IdOptions {
    /// Fills in what is not set from the configuration. The configured epoch and node belong to the
    /// configured layout only.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the configuration contradicts itself.
    pub fn or(mut self, config: &IdSection) -> Result<Self, CliError> {
        let configured = config
            .layout
            .as_deref()
            .map_or(Ok(Layout::TWITTER), parse::layout);
        let configured =
            configured.map_err(|error| CliError::usage(format!("id.layout: {error}")))?;
        if config.node.is_some() && config.lease.is_some() {
            return Err(CliError::usage(
                "id.node and id.lease are both set; a node is either configured or leased",
            ));
        }
        let layout = *self.layout.get_or_insert(configured);
        if layout != configured {
            return Ok(self);
        }
        self.epoch_ms = self.epoch_ms.or(config.epoch_ms);
        if self.node.is_none() && self.lease.is_none() {
            self.node.clone_from(&config.node);
            self.lease = config.lease;
        }
        Ok(self)
    }

    /// The layout.
    pub fn layout(&self) -> Layout {
        let layout = self.layout.unwrap_or(Layout::TWITTER);
        let moved = self.epoch_ms.map(|epoch_ms| layout.with_epoch(epoch_ms));
        moved.unwrap_or(layout)
    }

    /// The configured node.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the layout has no such node.
    pub fn configured_node(&self) -> Result<Option<Node>, CliError> {
        let layout = self.layout();
        let node = match &self.node {
            None => return Ok(None),
            Some(NodeText::Number(number)) => Node::new(&layout, *number),
            Some(NodeText::Fields(fields)) => {
                check_names(&layout, fields)?;
                let fields = fields.iter().map(|(name, value)| (name.as_str(), *value));
                Node::from_fields(&layout, &fields.collect::<Vec<_>>())
            }
        };
        node.map(Some).map_err(CliError::usage)
    }

    /// The layout, which must be one that generates IDs.
    ///
    /// # Errors
    /// [`CliError::Usage`] if it is not.
    pub fn generating_layout(&self) -> Result<Layout, CliError> {
        let layout = self.layout();
        Node::max(&layout).map_err(CliError::usage)?;
        Ok(layout)
    }

    /// The configured node, or node 0.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the layout has no such node, or generates no IDs.
    pub fn node_or_first(&self) -> Result<Node, CliError> {
        let first = || Node::new(&self.layout(), 0).map_err(CliError::usage);
        self.configured_node()?.map_or_else(first, Ok)
    }

    /// The node of the service: node 0 by default.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the layout has no such node, or generates no IDs.
    pub fn choice(&self, data: &Path, store: Option<&Store>) -> Result<NodeChoice, CliError> {
        let layout = self.generating_layout()?;
        let folder = folder(data);
        match (self.lease, store) {
            (None, _) => {
                let node = self.node_or_first()?;
                Ok(NodeChoice::Configured { node, folder })
            }
            (Some(LeaseStore::File), _) => Ok(NodeChoice::Folder { layout, folder }),
            (Some(LeaseStore::Store), Some(store)) => {
                let window_config = WindowConfig::default();
                let leases = NodeLeases::new(store.clone(), layout, window_config, holder_name());
                Ok(NodeChoice::Store {
                    leases: Box::new(leases),
                    layout,
                    folder,
                })
            }
            (Some(LeaseStore::Store), None) => Err(CliError::usage(
                "this command leases no node in the store; use --lease file",
            )),
        }
    }
}

/// Starts the service, and Thrift where an address for it is given.
///
/// # Errors
/// [`CliError`] as the process ends.
pub async fn start_id_service(
    config: &IdSection,
    node: NodeChoice,
    thrift: Option<SocketAddr>,
    stop: watch::Receiver<bool>,
) -> Result<RunningIdService, CliError> {
    // Listened on before the node is taken: a wrong address costs nothing then.
    let listener = match thrift {
        Some(address) => {
            let listener = listen::bind(address, "--listen-thrift").await?;
            Some(listener.into_std().map_err(CliError::failed)?)
        }
        None => None,
    };
    let own = listener.as_ref().and_then(|bound| bound.local_addr().ok());
    let settings = Settings {
        node,
        policy: policy(config.wait),
        peers: other_peers(config.peers.clone(), own).await,
        skip_sanity_check: config.skip_sanity_check,
    };
    // A request costs a hundred times what reading the clock does, and no thread has to run
    // after a suspension before the time is right.
    let clock: SharedClock = Arc::new(SystemClock);
    let service = Service::start(settings, clock, stop).await?;
    let issuer = service.issuer().clone();
    if issuer.node().fields().next().is_none() {
        tracing::warn!(
            layout = issuer.layout().name(),
            "the layout has no node: IDs repeat if anything else makes IDs of it"
        );
    }
    let limits = thrift::Limits {
        connections: listen::thrift_connections(),
        ..thrift::Limits::default()
    };
    let started = listener.map(|listener| thrift::Listener::start(listener, issuer, limits));
    match started.transpose() {
        Ok(thrift) => Ok(RunningIdService { service, thrift }),
        Err(error) => {
            service.stop().await;
            Err(CliError::failed(format!(
                "the Thrift server cannot be started: {error}"
            )))
        }
    }
}

/// The listen address for Thrift; `None` for nowhere.
///
/// # Errors
/// [`CliError::Usage`] if it is invalid, or remote without `allow_remote`.
pub fn thrift_address(config: &IdSection) -> Result<Option<SocketAddr>, CliError> {
    match config.listen_thrift.as_deref() {
        Some("none") => Ok(None),
        Some(text) => open_address(text, DEFAULT_THRIFT, config.allow_remote).map(Some),
        None => Ok(Some(DEFAULT_THRIFT)),
    }
}

/// An address that only this machine reaches, unless others may.
///
/// # Errors
/// [`CliError::Usage`] if it is invalid, or remote without `allow_remote`.
pub fn open_address(
    text: &str,
    default: SocketAddr,
    allow_remote: bool,
) -> Result<SocketAddr, CliError> {
    let address = listen::address(text, default)?;
    if address.ip().is_loopback() || allow_remote {
        return Ok(address);
    }
    Err(CliError::usage(format!(
        "{text} can be reached from other machines, and the ID service has no authentication; add --allow-remote if whoever reaches it may take IDs"
    )))
}

/// Where the windows of this data folder's nodes are recorded.
pub fn folder(data: &Path) -> std::path::PathBuf {
    data.join("ids")
}

/// The node in words: its number and its fields.
pub fn describe_node(node: &Node) -> String {
    let fields = node.fields().map(|(name, value)| format!("{name} {value}"));
    match fields.collect::<Vec<_>>().join(", ").as_str() {
        "" => "the only node".to_owned(),
        fields => format!("node {} ({fields})", node.number()),
    }
}

fn check_names(layout: &Layout, fields: &[(String, u64)]) -> Result<(), CliError> {
    let first = Node::new(layout, 0).map_err(CliError::usage)?;
    let known: Vec<&str> = first.fields().map(|(name, _)| name).collect();
    let is_unknown = |(name, _): &&(String, u64)| !known.contains(&name.as_str());
    match fields.iter().find(is_unknown) {
        Some((name, _)) => Err(CliError::usage(format!(
            "{} has no node field {name:?}; its node fields are: {}",
            layout.name(),
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

/// The peers without this process: one list may serve all services.
async fn other_peers(all: Vec<String>, own: Option<SocketAddr>) -> Vec<String> {
    let Some(own) = own else {
        return all;
    };
    let others = async {
        let mut others = Vec::new();
        for peer in &all {
            if !is_own(peer, own).await {
                others.push(peer.clone());
            }
        }
        others
    };
    let others = tokio::time::timeout(MAX_LOOK_UP, others).await;
    others.unwrap_or(all)
}

/// Whether a peer's address is the one that this process listens on, which may be all of the
/// machine's.
async fn is_own(peer: &str, own: SocketAddr) -> bool {
    // Only an address of this machine can be bound to.
    let is_local = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    let is_here = |ip| ip == own.ip() || own.ip().is_unspecified() && is_local(ip);
    match lookup_host(peer).await {
        Ok(mut addresses) => addresses.any(|at| at.port() == own.port() && is_here(at.ip())),
        Err(_) => false,
    }
}

fn policy(wait: Option<HumanMs>) -> ClockPolicy {
    match wait {
        Some(HumanMs(ms)) if ms > 0 => ClockPolicy::Wait {
            at_most_ms: u32::try_from(ms).unwrap_or(u32::MAX),
        },
        _ => ClockPolicy::Refuse,
    }
}

impl From<ServiceError> for CliError {
    fn from(error: ServiceError) -> Self {
        let help = match &error {
            ServiceError::Sanity(_) => "; --skip-sanity-check starts it all the same",
            ServiceError::Node(HeldNodeError::Folder(FileError::Copied { .. })) => ADOPT,
            _ => "",
        };
        let text = format!("the ID service does not start: {error}{help}");
        match error {
            ServiceError::Node(HeldNodeError::Folder(FileError::Held { .. })) => Self::Locked(text),
            _ => Self::Failed(text),
        }
    }
}

const MAX_LOOK_UP: Duration = Duration::from_secs(5);
/// How a copied folder is adopted.
pub const ADOPT: &str = " (`driftline id adopt`)";
/// The port of the service of 2010.
pub const DEFAULT_THRIFT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7609);

#[cfg(test)]
mod tests {
    use super::{super::id_place::peer, *};

    #[test]
    fn nodes_are_numbers_or_fields() {
        assert_eq!("37".parse(), Ok(NodeText::Number(37)));
        let fields = vec![("datacenter".to_owned(), 1), ("worker".to_owned(), 5)];
        let parsed = "datacenter=1, worker=5".parse();
        assert_eq!(parsed, Ok(NodeText::Fields(fields)));
        for text in ["", "worker", "worker=", "worker=x", "-1", "1,2"] {
            let refused = text.parse::<NodeText>().unwrap_err();
            assert!(refused.contains(&format!("{text:?}")), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_service_is_not_its_own_peer() {
        let all: SocketAddr = "0.0.0.0:7609".parse().unwrap();
        let one: SocketAddr = "127.0.0.1:7609".parse().unwrap();
        assert!(is_own("127.0.0.1:7609", all).await);
        assert!(is_own("localhost:7609", one).await);
        assert!(!is_own("127.0.0.1:7610", all).await);
        assert!(!is_own("192.0.2.1:7609", all).await);
        assert!(!is_own("192.0.2.1:7609", one).await);
    }

    #[test]
    fn peers_are_hosts_with_ports() {
        for text in ["localhost:7609", "[::1]:7609", "ids2.example:1"] {
            assert_eq!(peer(text), Ok(text.to_owned()));
        }
        for text in ["localhost", ":7609", "a:b", "a:70000", ""] {
            assert!(peer(text).is_err(), "{text}");
        }
    }
}
