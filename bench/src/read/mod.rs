//! `read`: pages of timelines over HTTP, next to a bare handler that sends the stored JSON of the
//! same rows.

mod bare;
mod client;
pub(crate) mod fill;
pub(crate) mod home;

use std::{net::SocketAddr, time::Duration};

use driftline_api::router;
use driftline_mirror::SourceHealth;
use driftline_server::testing::app;
use driftline_store::{Store, Target};
use tokio::{net::TcpListener, runtime::Runtime};

use self::{
    client::{Endpoint, Load},
    fill::Filled,
};
use crate::{
    Effort,
    failure::Failure,
    rounds::{Pairs, Times},
    table::{Table, met},
};

/// Measures a small and a large timeline.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let connections = CONNECTIONS;
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
    let app = app(&store, SourceHealth::default());
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

/// One kind of request, measured on every site: ours and the peer's.
struct Case {
    endpoint: Endpoint,
    figures: Vec<Pairs<Times>>,
}

impl Case {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            figures: Vec::new(),
        }
    }

    fn measure(&mut self, sites: &[Site], load: Load, round: u64) -> Result<(), Failure> {
        self.figures.resize_with(sites.len(), Pairs::new);
        for (site, pairs) in sites.iter().zip(&mut self.figures) {
            let asked = self.endpoint.into();
            let times = |address| client::times(address, &asked, &site.filled.ids, load, round);
            pairs.round(|| times(site.ours), || times(site.peer))?;
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
        for (site, pairs) in sites.iter().zip(&case.figures) {
            let [p50, bare_p50, ratio] = pairs.cells(|times| times.p50, 2);
            let [p99, bare_p99, _] = pairs.cells(|times| times.p99, 2);
            table.row([
                case.endpoint.name().to_owned(),
                site.filled.ids.len().to_string(),
                p50,
                p99,
                bare_p50,
                bare_p99,
                ratio,
                format!("p99 < {P99_TARGET_MS} ms"),
                met(pairs.ours(|times| times.p99, 2).median < P99_TARGET_MS),
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
        let ours =
            |figure: fn(&Times) -> f64| large.ours(figure, 2).median / small.ours(figure, 2).median;
        let p50 = |times: &Times| times.p50;
        let (ours_p50, ours_p99) = (ours(p50), ours(|times| times.p99));
        let bare = large.peer(p50, 2).median / small.peer(p50, 2).median;
        table.row([
            case.endpoint.name().to_owned(),
            format!("{ours_p50:.2}"),
            format!("{ours_p99:.2}"),
            format!("{bare:.2}"),
            format!("<= {GROWTH_TARGET}"),
            met(ours_p50.max(ours_p99) <= GROWTH_TARGET),
        ]);
    }
    table
}

const CONNECTIONS: usize = 8;
const P99_TARGET_MS: f64 = 5.0;
const GROWTH_TARGET: f64 = 1.5;
