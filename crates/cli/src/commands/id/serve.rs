//! `id serve`: the service of IDs by itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use driftline_server::{http, ids};
use driftline_store::Store;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    commands::serve::record_metrics,
    config::{Config, IdSection},
    duration::{HumanMs, parse_ms},
    error::CliError,
    ids::{LeasePlace, Maker, PeerText, Running, node_shown, open_address, thrift_address},
    listen, output,
    place::{Lock, Place},
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
    maker: Maker,
    /// Wait up to this long for a clock that is behind, instead of refusing.
    #[arg(long, value_name = "DURATION", value_parser = human_ms)]
    wait: Option<HumanMs>,
    /// Another service's Thrift address, as HOST:PORT, to be asked about its
    /// node and clock; may be given several times.
    #[arg(long = "peer", value_name = "ADDRESS")]
    peers: Vec<PeerText>,
    /// Don't ask them.
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
        let maker = self.maker.or(&section)?;
        let thrift = thrift_address(self.listen_thrift.as_deref(), &section)?;
        let wanted = self.listen_http.as_ref().or(section.listen_http.as_ref());
        let http = wanted
            .map(|text| open_address(text, USUAL_HTTP, section.allow_remote))
            .transpose()?;
        if thrift.is_none() && http.is_none() {
            return Err(CliError::usage(
                "the service would listen nowhere; give --listen-thrift or --listen-http an address",
            ));
        }
        let stop = stop::on_signal()
            .map_err(|error| CliError::failed(format!("signals cannot be handled: {error}")))?;
        let place = Place::new(&config.store)?;
        place.make()?;
        let http = match http {
            Some(address) => Some(listen::bind(address, "--listen-http").await?),
            None => None,
        };
        let shared = shared_store(&place, &maker).await?;
        let store = shared.as_ref().map(|(_, store)| store);
        let node = maker.choice(place.data(), store)?;
        let outcome = match Running::start(&section, node, thrift, stop.clone()).await {
            Ok(running) => {
                let served = serve(&running, http, stop, json).await;
                running.stop().await;
                served
            }
            Err(error) => Err(error),
        };
        if let Some((_lock, store)) = shared {
            store.close().await;
        }
        outcome
    }

    /// What was not said is as configured.
    fn section(&self, config: &IdSection) -> IdSection {
        let mut section = config.clone();
        section.allow_remote |= self.allow_remote;
        section.skip_sanity_check |= self.skip_sanity_check;
        section.wait = self.wait.or(section.wait);
        if !self.peers.is_empty() {
            section.peers.clone_from(&self.peers);
        }
        section
    }
}

/// Serves until it is told to stop.
async fn serve(
    running: &Running,
    http: Option<TcpListener>,
    mut stop: watch::Receiver<bool>,
    json: bool,
) -> Result<(), CliError> {
    let broke = |error: std::io::Error| CliError::failed(format!("HTTP broke: {error}"));
    let stopped = async move {
        let _ = stop.wait_for(|&stop| stop).await;
    };
    let Some(listener) = http else {
        tell(running, None, json)?;
        stopped.await;
        return Ok(());
    };
    let address = listener.local_addr().map_err(broke)?;
    let router = ids::standalone(&running.service, record_metrics()?);
    tell(running, Some(address), json)?;
    http::serve(listener, router, stopped).await.map_err(broke)
}

fn tell(running: &Running, http: Option<SocketAddr>, json: bool) -> Result<(), CliError> {
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
    let mut line = format!("{layout} IDs of {}", node_shown(issuer.node()));
    if let Some(address) = thrift {
        line.push_str(&format!(", Thrift on {address}"));
    }
    if let Some(url) = http {
        line.push_str(&format!(", HTTP on {url}"));
    }
    output::line(&line)
}

/// The store where nodes are leased, if they are.
async fn shared_store(
    place: &Place,
    maker: &Maker,
) -> Result<Option<(Option<Lock>, Store)>, CliError> {
    if maker.lease != Some(LeasePlace::Store) {
        return Ok(None);
    }
    place.open_beside_others().await.map(Some)
}

fn human_ms(text: &str) -> Result<HumanMs, String> {
    parse_ms(text).map(HumanMs)
}

const USUAL_HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7610);
