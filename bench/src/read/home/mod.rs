//! `home`: pages of home timelines over HTTP on both databases, next to a bare handler that finds the same posts by
//! the same statements, a request with a token next to the same without, and what a process of many posts needs.

mod bare;
mod database;
mod memory;
mod reader;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Instant};

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
    rounds::{Pairs, Times},
    table::{Table, met},
};

pub(crate) use memory::{ChildOptions, run_child};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let size = if effort.quick { QUICK } else { FULL };
    let runtime = Runtime::new()?;
    let mut tables = Tables::new(size);
    for name in [DatabaseName::Sqlite, DatabaseName::Postgres] {
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
    let mut figures: BTreeMap<(usize, usize), Pairs<Times>> = BTreeMap::new();
    for round in 0..rounds {
        for (number, case) in CASES.iter().enumerate() {
            for home in homes {
                let load = Load {
                    connections: case.connections,
                    requests: size.requests,
                };
                let pairs = figures.entry((number, home.posts));
                let pairs = pairs.or_insert_with(Pairs::new);
                home.measure(case.reader, load, size.min_bytes, round, pairs)?;
            }
        }
    }
    for (number, case) in CASES.iter().enumerate() {
        let none = Pairs::new();
        let of = |posts: usize| figures.get(&(number, posts)).unwrap_or(&none);
        let p99 = |times: &Times| times.p99;
        for Home { posts, .. } in homes {
            let [ours_p50, bare_p50, ratio] = of(*posts).cells(|times| times.p50, 2);
            let [ours_p99, bare_p99, _] = of(*posts).cells(p99, 2);
            tables.pages.row([
                database.name().to_owned(),
                case.name.to_owned(),
                case.connections.to_string(),
                posts.to_string(),
                ours_p50,
                ours_p99,
                bare_p50,
                bare_p99,
                ratio,
                format!("p99 < {} ms", case.target_ms),
                met(of(*posts).ours(p99, 2).median < case.target_ms),
            ]);
        }
        let (large, small) = (of(size.large), of(size.small));
        let ours = large.ours(p99, 2).median / small.ours(p99, 2).median;
        let bare = large.peer(p99, 2).median / small.peer(p99, 2).median;
        tables.growth.row([
            database.name().to_owned(),
            format!("{}, {} connections", case.name, case.connections),
            format!("{ours:.2}"),
            format!("{bare:.2}"),
            format!("<= {GROWTH_TARGET}"),
            met(ours <= GROWTH_TARGET),
        ]);
    }
    for home in homes {
        let ratio = home.token_rates(size.requests, rounds)?.ratio(|rate| *rate);
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
        pairs: &mut Pairs<Times>,
    ) -> Result<(), Failure> {
        let token = Arc::clone(&self.tokens[reader as usize]);
        let upper = self.database.upper_ids();
        let ours = reader.asks_driftline(token, min_bytes);
        let theirs = reader.asks_bare(min_bytes);
        pairs.round(
            || client::times(self.ours, &ours, &upper, load, round),
            || client::times(self.bare, &theirs, &upper, load, round),
        )
    }

    /// Requests a second with a token and without.
    fn token_rates(&self, requests: usize, rounds: u64) -> Result<Pairs<f64>, Failure> {
        let without = Asked::from(Endpoint::PublicSince);
        let with = Asked {
            token: Some(Arc::clone(&self.tokens[0])),
            ..without.clone()
        };
        let load = Load {
            connections: CONNECTIONS,
            requests,
        };
        let mut pairs = Pairs::new();
        for round in 0..rounds {
            let rate = |asked: &Asked| -> Result<f64, Failure> {
                let start = Instant::now();
                client::read(self.ours, asked, &self.database.ids, load, round)?;
                Ok(requests as f64 / start.elapsed().as_secs_f64())
            };
            rate(&without)?;
            rate(&with)?;
            pairs.round(|| rate(&with), || rate(&without))?;
        }
        Ok(pairs)
    }
}

/// A post of 2 to 3 kB has at least so many.
const POST_BYTES: usize = 1_500;
const GROWTH_TARGET: f64 = 1.5;
const TOKEN_TARGET: f64 = 0.9;
