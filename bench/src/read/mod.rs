//! `read`: pages of timelines over HTTP, next to a bare handler that sends the stored JSON of the
//! same rows.

mod bare;
mod client;
pub(crate) mod fill;
pub(crate) mod home;
mod memory;
pub(crate) mod reader;

use std::net::SocketAddr;

use driftline_api::router;
use driftline_mirror::SourceHealth;
use driftline_server::testing::{OPERATOR_TOKEN, app};
use driftline_store::Store;
use tokio::runtime::Runtime;

use self::client::{Asked, Load};
pub(crate) use self::memory::{ChildOptions, run_child};
use crate::{
    Effort,
    database::{Place, Server},
    failure::Failure,
    http,
    rounds::Pairs,
    rounds::Times,
    table::{TIMES, Table, met},
};

/// Measures a small and a large timeline.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let (sizes, requests) = match effort.quick {
        true => ([1_000, 5_000], 400),
        false => ([10_000, 1_000_000], 7_000),
    };
    let runtime = Runtime::new()?;
    let server = Server::sqlite()?;
    let mut sites = Vec::new();
    for posts in sizes {
        let place = server.create(&format!("read_{posts}"))?;
        let ids = fill::timeline(&place, posts, fill::ACCOUNTS)?;
        let mut site = Site::open(&runtime, place, ids)?;
        for (path, token) in [("list/1", Some(OPERATOR_TOKEN)), ("public", None)] {
            for bound in ["since_id", "min_id"] {
                let asked = Asked {
                    target: format!("/api/v1/timelines/{path}?limit=40&{bound}="),
                    token: token.map(str::to_owned),
                    min_bytes: 40 * POST_BYTES,
                };
                site.cases.push(Case {
                    name: format!("{path}, {bound}"),
                    connections: CONNECTIONS,
                    max_ms: 5.0,
                    asked: [asked.clone(), asked],
                    times: Pairs::new(),
                });
            }
        }
        sites.push(site);
    }
    let mut tables = Tables::new("read: pages of 40", requests);
    tables.measure(server.name(), &mut sites, requests, effort.rounds(3))?;
    for site in sites {
        runtime.block_on(site.store.close());
    }
    tables.print();
    Ok(())
}

/// A filled store, served by Driftline and by the bare handler.
struct Site {
    place: Place,
    /// The IDs near which pages are asked for, ascending.
    ids: Vec<i64>,
    posts: usize,
    store: Store,
    addresses: [SocketAddr; 2],
    cases: Vec<Case>,
}

/// A kind of page, asked of Driftline and of the bare handler.
struct Case {
    name: String,
    connections: usize,
    /// The most that p99 may be.
    max_ms: f64,
    asked: [Asked; 2],
    times: Pairs<Times>,
}

impl Site {
    fn open(runtime: &Runtime, place: Place, ids: Vec<i64>) -> Result<Self, Failure> {
        let (store, ours) = serve(runtime, &place)?;
        Ok(Self {
            addresses: [ours, bare::serve(runtime, &place)?],
            posts: ids.len(),
            store,
            place,
            ids,
            cases: Vec::new(),
        })
    }
}

/// Opens a store and serves it as Driftline does.
fn serve(runtime: &Runtime, place: &Place) -> Result<(Store, SocketAddr), Failure> {
    let store = place.open()?;
    let app = runtime.block_on(async { app(&store, SourceHealth::default()) });
    let address = http::serve(runtime, router(app))?;
    Ok((store, address))
}

/// The times of pages, and how they grow from small stores to large ones.
struct Tables {
    pages: Table,
    growth: Table,
}

impl Tables {
    fn new(what: &str, requests: usize) -> Self {
        let title =
            format!("{what} over loopback, kept alive, {requests} requests a row and round");
        Self {
            pages: Table::new(
                title,
                &format!("database | request | connections | posts | {TIMES}"),
            ),
            growth: Table::new(
                format!("{what}: p99 in the largest store, times that in the smallest"),
                "database | request | connections | Driftline | bare | target | met",
            ),
        }
    }

    /// Measures each case of each site in each round.
    fn measure(
        &mut self,
        database: &str,
        sites: &mut [Site],
        requests: usize,
        rounds: usize,
    ) -> Result<(), Failure> {
        for round in 0..rounds as u64 {
            for Site {
                cases,
                ids,
                addresses,
                ..
            } in &mut *sites
            {
                for case in cases {
                    let load = Load {
                        connections: case.connections,
                        requests,
                    };
                    let times = |way: usize| {
                        client::times(addresses[way], &case.asked[way], ids, load, round)
                    };
                    case.times.round([0, 1], times)?;
                }
            }
        }
        let [small, .., large] = sites else {
            return Ok(());
        };
        for (small_case, large_case) in small.cases.iter().zip(&large.cases) {
            let cells = format!(
                "{database} | {} | {}",
                small_case.name, small_case.connections
            );
            for (posts, case) in [(small.posts, small_case), (large.posts, large_case)] {
                self.pages
                    .times(format!("{cells} | {posts}"), &case.times, case.max_ms);
            }
            let p99 = |case: &Case, way| case.times.of(way, |times| times.p99, 2).median;
            let [ours, bare] = [0, 1].map(|way| p99(large_case, way) / p99(small_case, way));
            let is_met = met(ours <= GROWTH_TARGET);
            self.growth.row(format!(
                "{cells} | {ours:.2} | {bare:.2} | <= {GROWTH_TARGET} | {is_met}"
            ));
        }
        Ok(())
    }

    fn print(&self) {
        self.pages.print();
        self.growth.print();
    }
}

/// A post of 2 to 3 kB has at least so many.
const POST_BYTES: usize = 1_500;
const CONNECTIONS: usize = 8;
const GROWTH_TARGET: f64 = 1.5;
