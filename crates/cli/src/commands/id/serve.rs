//! `id serve`: the ID service by itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use driftline_api::transport::TrustedProxies;
use driftline_id_service::{self as ids, RunningIdService};
use driftline_runtime::metrics::Part;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    config::{Config, IdSection},
    data_dir::DataDir,
    duration::HumanMs,
    error::CliError,
    listen,
    options::id_options::{
        IdOptions, describe_node, open_address, start_id_service, thrift_address,
    },
    options::id_place::{LeaseStore, peer},
    output,
    serving::{node_lost, record_metrics},
    stop,
};

/// Gives out IDs over Thrift, as the Snowflake service of 2010 did, and over
/// HTTP.
///
/// It needs no store and no network to make IDs. SIGTERM and Ctrl-C end it in
/// order; a second one ends it at once.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where Thrift clients are listened to; port 0 is any free one, none is
    /// nowhere [default: 127.0.0.1:7609].
    #[arg(long, value_name = "ADDRESS")]
    listen_thrift: Option<String>,
    /// Where HTTP clients are listened to [default: nowhere].
    #[arg(long, value_name = "ADDRESS")]
    listen_http: Option<String>,
    /// Allow addresses that other machines reach: whoever reaches them takes
    /// IDs without a log-in.
    #[arg(long)]
    allow_remote: bool,
    #[command(flatten)]
    id_options: IdOptions,
    /// Wait up to this long for a clock that is behind, instead of refusing.
    #[arg(long, value_name = "DURATION")]
    wait: Option<HumanMs>,
    /// Another service's Thrift address, as HOST:PORT, to be asked about its
    /// node and clock; may be given several times.
    #[arg(long = "peer", value_name = "ADDRESS", value_parser = peer)]
    peers: Vec<String>,
    /// Give out IDs without having asked them.
    #[arg(long)]
    skip_sanity_check: bool,
}

impl Serve {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let section = self.section(&config.id);
        let id_options = self.id_options.or(&section)?;
        let thrift = thrift_address(&section)?;
        let http_address = |text: &String| open_address(text, DEFAULT_HTTP, section.allow_remote);
        let http = section.listen_http.as_ref().map(http_address).transpose()?;
        if thrift.is_none() && http.is_none() {
            return Err(CliError::usage(
                "the service would listen nowhere; give --listen-thrift or --listen-http an address",
            ));
        }
        let stop = stop::on_signal()?;
        let data_dir = DataDir::new(&config.store)?;
        data_dir.make()?;
        let http = match http {
            Some(address) => {
                let listener = listen::bind(address, "--listen-http").await?;
                // Before the first client: counters made earlier count nowhere.
                Some((listener, record_metrics(|part| part == Part::IdService)?))
            }
            None => None,
        };
        let run = async {
            let shared = match id_options.lease {
                Some(LeaseStore::Store) => Some(data_dir.open_shared(LEASE_REMEDY).await?),
                _ => None,
            };
            let store = shared.as_ref().map(|(_, store)| store);
            let node = id_options.choice(data_dir.data(), store)?;
            let outcome = match start_id_service(&section, node, thrift, stop.clone()).await {
                Ok(mut running) => {
                    let served = serve(&mut running, http, stop.clone(), json).await;
                    running.stop().await;
                    served
                }
                // The stop signal came while it waited for its window.
                Err(_) if *stop.borrow() => Ok(()),
                Err(error) => Err(error),
            };
            if let Some((_lock, store)) = shared {
                store.close().await;
            }
            outcome
        };
        stop::soon_after(stop::stopped(stop.clone()), Box::pin(run)).await
    }

    /// `[id]` with the flags above it.
    fn section(&self, config: &IdSection) -> IdSection {
        let mut section = config.clone();
        section.allow_remote |= self.allow_remote;
        section.skip_sanity_check |= self.skip_sanity_check;
        section.wait = self.wait.or(section.wait);
        section.listen_thrift = self.listen_thrift.clone().or(section.listen_thrift);
        section.listen_http = self.listen_http.clone().or(section.listen_http);
        if !self.peers.is_empty() {
            section.peers.clone_from(&self.peers);
        }
        section
    }
}

/// Serves until the stop signal, or until the node is lost.
async fn serve(
    running: &mut RunningIdService,
    http: Option<(TcpListener, PrometheusHandle)>,
    stop: watch::Receiver<bool>,
    json: bool,
) -> Result<(), CliError> {
    let address = http.as_ref().map(|(listener, _)| listener.local_addr());
    announce(
        running,
        address.transpose().map_err(|error| listen::broke(&error))?,
        json,
    )?;
    let (thrift, service) = (running.thrift.take(), &running.service);
    let end = || async {
        tokio::select! {
            () = stop::stopped(stop.clone()) => Ok(()),
            () = service.lost() => Err(node_lost()),
        }
    };
    // Both at once: stopping must not take long.
    let over_http = async {
        match http {
            Some((listener, metrics)) => {
                let router = ids::standalone(service, metrics);
                listen::serve(listener, router, TrustedProxies::default(), end()).await
            }
            None => end().await,
        }
    };
    let over_thrift = async {
        let outcome = end().await;
        if let Some(thrift) = thrift {
            thrift.stop().await;
        }
        outcome
    };
    let (http, thrift) = tokio::join!(over_http, over_thrift);
    thrift.and(http)
}

fn announce(
    running: &RunningIdService,
    http: Option<SocketAddr>,
    json: bool,
) -> Result<(), CliError> {
    let thrift = running.thrift.as_ref().map(|thrift| thrift.address());
    let http = http.map(|address| format!("http://{address}"));
    let issuer = running.service.issuer();
    let layout = issuer.layout().name();
    if json {
        return output::json(&json!({
            "thrift": thrift,
            "http": http,
            "layout": layout,
            "node": issuer.node().number(),
        }));
    }
    let thrift = thrift.map_or_else(String::new, |address| format!(", Thrift on {address}"));
    let http = http.map_or_else(String::new, |url| format!(", HTTP on {url}"));
    let node = describe_node(issuer.node());
    output::line(&format!("{layout} IDs of {node}{thrift}{http}"))
}

/// What to do where another process has the database file.
const LEASE_REMEDY: &str = "use --lease file, or share a PostgreSQL database";
const DEFAULT_HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7610);
