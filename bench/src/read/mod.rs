//! `read`: pages of timelines over HTTP, next to a bare handler that sends the stored JSON of the
//! same rows.

mod bare;
mod client;
pub(crate) mod fill;
pub(crate) mod home;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use clap::Args;
use driftline_api::{App, OwnInstance, auth::TokenKeys, feed::Feed, people::People, router};
use driftline_mirror::{Policies, SourceHealth};
use driftline_server::{LocalMirror, admin::Host, api_description};
use driftline_store::{Store, Target};
use tokio::{net::TcpListener, runtime::Runtime, sync::watch};

use self::{
    client::{Endpoint, Load},
    fill::Filled,
};
use crate::{
    Effort,
    failure::Failure,
    operator,
    rounds::Spread,
    table::{Table, met},
};

/// What `read` takes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Options {
    /// Connections, each of which asks again as soon as it is answered
    #[arg(long, default_value_t = CONNECTIONS)]
    connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
        }
    }
}

/// Measures a small and a large timeline.
pub(crate) fn run(options: Options, effort: Effort) -> Result<(), Failure> {
    let connections = options.connections.clamp(1, CONNECTIONS);
    let (small, large, requests) = if effort.quick {
        (1_000, 5_000, 400)
    } else {
        (10_000, 1_000_000, 7_000)
    };
    let rounds = effort.rounds(3);
    let runtime = Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let mut sites = Vec::new();
    for posts in [small, large] {
        let filled = fill::timeline(
            &folder.path().join(format!("{posts}.db")),
            posts,
            fill::ACCOUNTS,
        )?;
        sites.push(runtime.block_on(Site::open(filled))?);
    }
    let mut cases: Vec<Case> = Endpoint::ALL.into_iter().map(Case::new).collect();
    for round in 0..rounds as u64 {
        for case in &mut cases {
            case.measure(
                &sites,
                Load {
                    connections,
                    requests,
                },
                round,
            )?;
        }
    }
    let title = format!(
        "read: pages of 40 over loopback, {connections} connections kept alive, {} requests a row, ms",
        requests * rounds
    );
    latency_table(title, &cases, &sites).print();
    growth_table(&cases, &sites).print();
    for site in sites {
        runtime.block_on(site.store.close());
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

/// A filled store, served by Driftline and by the bare handler.
struct Site {
    filled: Filled,
    store: Store,
    ours: SocketAddr,
    peer: SocketAddr,
}

impl Site {
    async fn open(filled: Filled) -> Result<Self, Failure> {
        let target = Target::Sqlite {
            path: filled.path.clone(),
        };
        let (store, ours) = serve_store(target).await?;
        Ok(Self {
            ours,
            peer: serve(bare::router(&filled.path)?).await?,
            store,
            filled,
        })
    }
}

/// Opens a store and serves it as Driftline does.
async fn serve_store(target: Target) -> Result<(Store, SocketAddr), Failure> {
    let store = tokio::task::spawn_blocking(|| Store::open(target)).await??;
    let (_, ready) = watch::channel(true);
    let app = App {
        store: store.clone(),
        store_fault: driftline_runtime::StoreFault::new(store.clone()),
        feed: Feed::new(store.clone()),
        mirror: Arc::new(LocalMirror {
            store: store.clone(),
            host: Host::of(&store),
            policies: Policies::default(),
            sources: SourceHealth::default(),
            store_disk: driftline_runtime::StoreDisk::default(),
            threads: None,
        }),
        description: api_description(),
        metrics: None,
        public_base: None,
        proxies: driftline_api::transport::TrustedProxies::default(),
        own: OwnInstance::default(),
        authorization: operator::authorization()?,
        people: People::new(TokenKeys::new([1; 8], [2; 32], 0), "bench"),
        ready,
    };
    let address = serve(router(app)).await?;
    Ok((store, address))
}

async fn serve(router: axum::Router) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(driftline_api::transport::serve(
        listener,
        router,
        driftline_api::transport::Limits::default(),
        std::future::pending(),
    ));
    Ok(address)
}

/// One kind of request, measured on every site.
struct Case {
    endpoint: Endpoint,
    /// For each site, for each round: p50 and p99 in ms, ours and the peer's.
    figures: Vec<Vec<[Times; 2]>>,
}

/// Quantiles of one round, ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
}

impl Case {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            figures: Vec::new(),
        }
    }

    fn measure(&mut self, sites: &[Site], load: Load, round: u64) -> Result<(), Failure> {
        self.figures.resize_with(sites.len(), Vec::new);
        for (site, figures) in sites.iter().zip(&mut self.figures) {
            let ids = Arc::clone(&site.filled.ids);
            let read = |address| -> Result<Times, Failure> {
                let warm = Load {
                    requests: load.requests / 10,
                    ..load
                };
                client::read(address, &self.endpoint.into(), &ids, warm, round + 1_000)?;
                let mut times = client::read(address, &self.endpoint.into(), &ids, load, round)?;
                times.sort_unstable();
                let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
                Ok(Times {
                    p50: at(50),
                    p99: at(99),
                })
            };
            figures.push([read(site.ours)?, read(site.peer)?]);
        }
        Ok(())
    }
}

fn latency_table(title: String, cases: &[Case], sites: &[Site]) -> Table {
    let mut table = Table::new(
        title,
        [
            "request",
            "posts",
            "Driftline p50",
            "p99",
            "bare p50",
            "p99",
            "ratio of p50",
            "target",
            "met",
        ],
    );
    for case in cases {
        for (site, rounds) in sites.iter().zip(&case.figures) {
            let of = |figure: fn(&[Times; 2]) -> f64| Spread::of(rounds.iter().map(figure), 2);
            let p99 = of(|[ours, _]| ours.p99);
            table.row([
                case.endpoint.name().to_owned(),
                site.filled.ids.len().to_string(),
                of(|[ours, _]| ours.p50).to_string(),
                p99.to_string(),
                of(|[_, peer]| peer.p50).to_string(),
                of(|[_, peer]| peer.p99).to_string(),
                of(|[ours, peer]| ours.p50 / peer.p50).to_string(),
                format!("p99 < {P99_TARGET_MS} ms"),
                met(p99.median < P99_TARGET_MS),
            ]);
        }
    }
    table
}

fn growth_table(cases: &[Case], sites: &[Site]) -> Table {
    let sizes: Vec<String> = sites
        .iter()
        .map(|s| s.filled.ids.len().to_string())
        .collect();
    let mut table = Table::new(
        format!(
            "read: times by which the last of {} posts is slower",
            sizes.join(" and ")
        ),
        [
            "request",
            "p50, Driftline",
            "p99, Driftline",
            "p50, bare",
            "target",
            "met",
        ],
    );
    for case in cases {
        let [small, large] = case.figures.as_slice() else {
            continue;
        };
        let of = |figure: fn(&[Times; 2]) -> f64| {
            let ratios = large.iter().zip(small).map(|(l, s)| figure(l) / figure(s));
            Spread::of(ratios, 2)
        };
        let (p50, p99) = (of(|[ours, _]| ours.p50), of(|[ours, _]| ours.p99));
        table.row([
            case.endpoint.name().to_owned(),
            p50.to_string(),
            p99.to_string(),
            of(|[_, peer]| peer.p50).to_string(),
            format!("<= {GROWTH_TARGET}"),
            met(p50.median <= GROWTH_TARGET && p99.median <= GROWTH_TARGET),
        ]);
    }
    table
}

const CONNECTIONS: usize = 8;
const P99_TARGET_MS: f64 = 5.0;
const GROWTH_TARGET: f64 = 1.5;
