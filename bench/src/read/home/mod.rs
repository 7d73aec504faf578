//! `home`: pages of home timelines over HTTP on both databases, next to a bare handler that finds the same posts by
//! the same statements, a request with a token next to the same without, and what a process of many posts needs.

mod bare;
mod database;
mod memory;
mod reader;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Instant};

use clap::{Args, ValueEnum};
use driftline_store::Store;
use tokio::runtime::Runtime;

use self::{
    database::{Database, Server},
    reader::Reader,
};
use super::{
    CONNECTIONS,
    client::{self, Asked, Endpoint, Load},
};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

pub(crate) use memory::{ChildOptions, run_child};

/// What `home` takes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Options {
    /// One of the databases alone
    #[arg(long)]
    database: Option<DatabaseName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DatabaseName {
    Sqlite,
    Postgres,
}

impl DatabaseName {
    const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// How much is filled in and asked.
#[derive(Debug, Clone, Copy)]
struct Size {
    small: usize,
    large: usize,
    requests: usize,
    /// What a page has at least.
    min_bytes: usize,
}

const FULL: Size = Size {
    small: 100_000,
    large: 1_000_000,
    requests: 2_000,
    min_bytes: 20 * POST_BYTES,
};
/// So few posts that pages are short.
const QUICK: Size = Size {
    small: 2_000,
    large: 10_000,
    requests: 200,
    min_bytes: POST_BYTES,
};

/// Measures pages of two readers in a small and a large store.
pub(crate) fn run(options: Options, effort: Effort) -> Result<(), Failure> {
    let size = if effort.quick { QUICK } else { FULL };
    let runtime = Runtime::new()?;
    let mut tables = Tables::new(size);
    for name in [DatabaseName::Sqlite, DatabaseName::Postgres] {
        if options.database.is_some_and(|only| only != name) {
            continue;
        }
        let server = Server::start(name)?;
        let mut homes = Vec::new();
        for posts in [size.small, size.large] {
            homes.push(Home::open(&runtime, &server, posts)?);
        }
        measure(&homes, size, effort, name, &mut tables)?;
        let mut databases = Vec::new();
        for home in homes {
            runtime.block_on(home.store.close());
            databases.push(home.database);
        }
        if let Some(large) = databases.last() {
            memory::measure(&runtime, large, size, effort, &mut tables.memory)?;
        }
    }
    tables.print();
    Ok(())
}

struct Tables {
    pages: Table,
    growth: Table,
    tokens: Table,
    memory: Table,
}

impl Tables {
    fn new(size: Size) -> Self {
        let Size {
            small,
            large,
            requests,
            ..
        } = size;
        Self {
            pages: Table::new(
                format!("home: pages of 20 over loopback, {requests} requests a row and round, ms"),
                [
                    "database",
                    "request",
                    "connections",
                    "posts",
                    "Driftline p50",
                    "p99",
                    "bare p50",
                    "p99",
                    "ratio of p50",
                    "target",
                    "met",
                ],
            ),
            growth: Table::new(
                format!("home: p99 with {large} posts against {small}"),
                ["database", "request", "times", "bare", "target", "met"],
            ),
            tokens: Table::new(
                "home: pages of the public timeline with a token against the same without",
                [
                    "database",
                    "posts",
                    "requests/s, with/without",
                    "target",
                    "met",
                ],
            ),
            memory: Table::new(
                format!(
                    "home: memory of a process with {large} posts and {} clients that page, {} pages each",
                    memory::CLIENTS,
                    memory::PAGES
                ),
                [
                    "database",
                    "Driftline, resident, MB",
                    "at most, MB",
                    "bare, resident, MB",
                    "at most, MB",
                    "target",
                    "met",
                ],
            ),
        }
    }

    fn print(&self) {
        for table in [&self.pages, &self.growth, &self.tokens, &self.memory] {
            table.print();
        }
    }
}

const CASES: [Case; 3] = [
    Case::new("500 follows", Reader::Few, CONNECTIONS, 10.0),
    Case::new("5,000 follows, 4,990 silent", Reader::Many, 1, 20.0),
    Case::new(
        "5,000 follows, 4,990 silent",
        Reader::Many,
        CONNECTIONS,
        50.0,
    ),
];

fn measure(
    homes: &[Home],
    size: Size,
    effort: Effort,
    database: DatabaseName,
    tables: &mut Tables,
) -> Result<(), Failure> {
    let rounds = effort.rounds(3) as u64;
    let mut figures: BTreeMap<(usize, usize), Vec<[Times; 2]>> = BTreeMap::new();
    for round in 0..rounds {
        for (number, case) in CASES.iter().enumerate() {
            for home in homes {
                let load = Load {
                    connections: case.connections,
                    requests: size.requests,
                };
                let times = home.measure(case.reader, load, size.min_bytes, round)?;
                figures.entry((number, home.posts)).or_default().push(times);
            }
        }
    }
    for (number, case) in CASES.iter().enumerate() {
        let of = |posts: usize, figure: fn(&[Times; 2]) -> f64| {
            let figures = figures.get(&(number, posts)).into_iter().flatten();
            Spread::of(figures.map(figure), 2)
        };
        for Home { posts, .. } in homes {
            let p99 = of(*posts, |[ours, _]| ours.p99);
            tables.pages.row([
                database.name().to_owned(),
                case.name.to_owned(),
                case.connections.to_string(),
                posts.to_string(),
                of(*posts, |[ours, _]| ours.p50).to_string(),
                p99.to_string(),
                of(*posts, |[_, peer]| peer.p50).to_string(),
                of(*posts, |[_, peer]| peer.p99).to_string(),
                of(*posts, |[ours, peer]| ours.p50 / peer.p50).to_string(),
                format!("p99 < {} ms", case.target_ms),
                met(p99.median < case.target_ms),
            ]);
        }
        let times = |figure: fn(&[Times; 2]) -> f64| {
            of(size.large, figure).median / of(size.small, figure).median
        };
        let ours = times(|[ours, _]| ours.p99);
        tables.growth.row([
            database.name().to_owned(),
            format!("{}, {} connections", case.name, case.connections),
            format!("{ours:.2}"),
            format!("{:.2}", times(|[_, peer]| peer.p99)),
            format!("<= {GROWTH_TARGET}"),
            met(ours <= GROWTH_TARGET),
        ]);
    }
    for home in homes {
        let ratios = (0..rounds).map(|round| home.token_ratio(size.requests, round));
        let ratios: Vec<f64> = ratios.collect::<Result<_, _>>()?;
        let ratio = Spread::of(ratios, 2);
        tables.tokens.row([
            database.name().to_owned(),
            home.posts.to_string(),
            ratio.to_string(),
            format!(">= {TOKEN_TARGET}"),
            met(ratio.median >= TOKEN_TARGET),
        ]);
    }
    Ok(())
}

struct Case {
    name: &'static str,
    reader: Reader,
    connections: usize,
    target_ms: f64,
}

impl Case {
    const fn new(name: &'static str, reader: Reader, connections: usize, target_ms: f64) -> Self {
        Self {
            name,
            reader,
            connections,
            target_ms,
        }
    }
}

/// Quantiles of one round, ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
}

/// A store with two readers, served by Driftline and by the bare handler.
struct Home {
    database: Database,
    posts: usize,
    store: Store,
    ours: SocketAddr,
    bare: SocketAddr,
    tokens: [Arc<str>; 2],
}

impl Home {
    fn open(runtime: &Runtime, server: &Server, posts: usize) -> Result<Self, Failure> {
        let database = server.fill(posts)?;
        reader::add_all(database.target())?;
        let (store, ours) = runtime.block_on(super::serve_store(database.target()))?;
        let token = |reader| runtime.block_on(reader::log_in(ours, reader));
        Ok(Self {
            posts,
            tokens: [token(Reader::Few)?, token(Reader::Many)?],
            bare: runtime.block_on(bare::serve(&database.place))?,
            database,
            store,
            ours,
        })
    }

    fn measure(
        &self,
        reader: Reader,
        load: Load,
        min_bytes: usize,
        round: u64,
    ) -> Result<[Times; 2], Failure> {
        let token = Arc::clone(&self.tokens[reader as usize]);
        let ours = reader.asks_driftline(token, min_bytes);
        let theirs = reader.asks_bare(min_bytes);
        Ok([
            self.times(self.ours, &ours, load, round)?,
            self.times(self.bare, &theirs, load, round)?,
        ])
    }

    fn times(
        &self,
        address: SocketAddr,
        asked: &Asked,
        load: Load,
        round: u64,
    ) -> Result<Times, Failure> {
        let upper = self.database.upper_ids();
        let warm = Load {
            requests: (load.requests / 10).max(load.connections),
            ..load
        };
        client::read(address, asked, &upper, warm, round + 1_000)?;
        let mut times = client::read(address, asked, &upper, load, round)?;
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
        Ok(Times {
            p50: at(50),
            p99: at(99),
        })
    }

    fn token_ratio(&self, requests: usize, round: u64) -> Result<f64, Failure> {
        let without = Asked::from(Endpoint::PublicSince);
        let with = Asked {
            token: Some(Arc::clone(&self.tokens[0])),
            ..without.clone()
        };
        let load = Load {
            connections: CONNECTIONS,
            requests,
        };
        let rate = |asked: &Asked| -> Result<f64, Failure> {
            let start = Instant::now();
            client::read(self.ours, asked, &self.database.ids, load, round)?;
            Ok(requests as f64 / start.elapsed().as_secs_f64())
        };
        rate(&without)?;
        rate(&with)?;
        // Each goes first in half of the rounds.
        let (with, without) = match round % 2 {
            0 => {
                let with = rate(&with)?;
                (with, rate(&without)?)
            }
            _ => {
                let without = rate(&without)?;
                (rate(&with)?, without)
            }
        };
        Ok(with / without)
    }
}

/// A post of 2 to 3 kB has at least so many.
const POST_BYTES: usize = 1_500;
const GROWTH_TARGET: f64 = 1.5;
const TOKEN_TARGET: f64 = 0.9;
