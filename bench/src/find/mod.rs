//! `find`: searches of one connection, next to a scan of all texts; the index, its speed and its size; page commits
//! with and without the keeper of the index, and how far it lags; standing predicates.

pub(crate) mod corpus;
pub(crate) mod fill;
mod hidden;
mod live;
mod searches;
mod standing;

use std::time::{Duration, Instant};

use clap::Args;
use driftline_runtime::IndexBacklog;
use driftline_server::index_keeper::index_all;
use driftline_store::{Store, Viewer, search};
use postgres::NoTls;
use tokio::{runtime::Runtime, sync::watch};

use self::{
    corpus::Corpus,
    searches::{Kind, Peer, kinds, times},
};
use crate::{
    Effort,
    database::{Place, Server},
    failure::Failure,
    rounds::{Pairs, Spread, Times},
    table::{Table, met},
};

/// The options of `find`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The number of public posts; a tenth of them shows the growth
    #[arg(long)]
    posts: Option<u64>,
    /// Only this database: `sqlite` or `postgresql`
    #[arg(long)]
    database: Option<String>,
    /// Only the commits and the lag of the index
    #[arg(long)]
    commits: bool,
    /// Only standing predicates, without a database
    #[arg(long)]
    standing: bool,
    /// Only the same searches without and with hits that the viewer may not see, among a tenth of the posts
    #[arg(long)]
    hidden: bool,
}

/// Measures both databases.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let default = if effort.quick { 100_000 } else { 1_000_000 };
    let posts = options.posts.unwrap_or(default).max(1_000);
    let mut tables = Tables::new();
    let mut live = live::Tables::new();
    let mut hidden = hidden::table();
    let asked = options.database.as_deref();
    if options.standing {
        standing::measure(effort)?.print();
        return Ok(());
    }
    for name in ["sqlite", "postgresql"] {
        if asked.is_some_and(|asked| asked != name) {
            continue;
        }
        let server = match name {
            "sqlite" => Server::sqlite()?,
            _ => Server::postgres()?,
        };
        if options.hidden {
            let small = Site::fill(&server, posts / 10, &mut tables.index)?;
            hidden::measure(server.name(), &small, &mut hidden)?;
            continue;
        }
        let large = Site::fill(&server, posts, &mut tables.index)?;
        if !options.commits {
            let mut sites = [Site::fill(&server, posts / 10, &mut tables.index)?, large];
            tables.measure(server.name(), &mut sites, effort.rounds(5))?;
            let [small, large] = sites;
            hidden::measure(server.name(), &small, &mut hidden)?;
            live.measure(server.name(), &large, effort)?;
        } else {
            live.measure(server.name(), &large, effort)?;
        }
    }
    if options.hidden {
        hidden.print();
        return Ok(());
    }
    tables.print(options.commits);
    live.print();
    if !options.commits {
        hidden.print();
        standing::measure(effort)?.print();
    }
    Ok(())
}

/// A filled and indexed store.
struct Site {
    store: Store,
    peer: Peer,
    corpus: Corpus,
    /// The account with private sources.
    account: Viewer,
    cases: Vec<Case>,
}

/// Searches of a kind for a viewer, in rounds, and scans.
struct Case {
    kind: Kind,
    viewer: Viewer,
    parts: usize,
    times: Pairs<Vec<Duration>>,
    spent: Duration,
}

impl Site {
    /// Fills and indexes a new database. Adds a row about the index to a table.
    fn fill(server: &Server, posts: u64, table: &mut Table) -> Result<Site, Failure> {
        let place = server.create(&format!("find_{posts}"))?;
        let corpus = Corpus::new(posts);
        let start = Instant::now();
        let account = fill::fill(&place, &corpus)?;
        eprintln!("{posts} posts filled in {:.0?}", start.elapsed());
        let store = place.open()?;
        let waiting = store.read_blocking(|tx| search::pending(tx, u32::MAX))?;
        let (_stop, is_stopped) = watch::channel(false);
        let start = Instant::now();
        Runtime::new()?.block_on(index_all(&store, &IndexBacklog::default(), &is_stopped))?;
        let per_s = f64::from(waiting) / start.elapsed().as_secs_f64();
        place.settle()?;
        let [index_mb, texts_mb] = sizes_mb(&place)?;
        let ratio = index_mb / texts_mb;
        let most = match place {
            Place::File(_) => 2.0,
            Place::Url(_) => 4.0,
        };
        let name = server.name();
        eprintln!("indexed at {per_s:.0} posts/s");
        table.row(format!(
            "{name} | {posts} | {waiting} | {per_s:.0} | >= {INDEXED_PER_S} | {} | {index_mb:.1} | {texts_mb:.1} | \
             {ratio:.2} | <= {most} | {}",
            met(per_s >= INDEXED_PER_S),
            met(ratio <= most),
        ));
        let viewers = [Viewer::Anonymous, account];
        let cases = viewers.into_iter().flat_map(|viewer| {
            kinds().into_iter().map(move |kind| Case {
                kind,
                viewer,
                parts: 0,
                times: Pairs::new(),
                spent: Duration::ZERO,
            })
        });
        Ok(Site {
            peer: Peer::open(&place)?,
            cases: cases.collect(),
            store,
            corpus,
            account,
        })
    }

    /// Searches each case some times, in turns with scans. A case that has taken long is left out.
    fn round(&mut self) -> Result<(), Failure> {
        let Site {
            store,
            peer,
            corpus,
            cases,
            ..
        } = self;
        for case in cases {
            let Case {
                kind,
                times: rounds,
                ..
            } = case;
            let (viewer, start) = (case.viewer, Instant::now());
            if case.spent.is_zero() {
                // Warms up.
                let found = kind.find(store, viewer)?;
                kind.check(&found, viewer, corpus.posts)?;
                case.parts = found.parts;
                eprintln!(
                    "{} posts, {}: {:.1?}",
                    corpus.posts,
                    kind.name,
                    start.elapsed()
                );
                kind.scan(peer)?;
            } else if case.spent > LONG {
                continue;
            }
            rounds.round([0, 1], |way| match way {
                0 => times(SEARCHES, || kind.find(store, viewer).map(drop)),
                _ => times(SCANS, || kind.scan(peer)),
            })?;
            case.spent += start.elapsed();
        }
        Ok(())
    }
}

impl Case {
    /// Quantiles over all rounds: of the searches (0), of the scans (1).
    fn quantiles(&self, way: usize) -> Times {
        Times::of(
            self.times
                .0
                .iter()
                .flat_map(|round| round[way].clone())
                .collect(),
        )
    }

    const fn viewer_name(&self) -> &'static str {
        match self.viewer {
            Viewer::Anonymous => "world",
            _ => "account",
        }
    }
}

struct Tables {
    searches: Table,
    growth: Table,
    index: Table,
}

impl Tables {
    fn new() -> Tables {
        Tables {
            searches: Table::new(
                "find: the newest 20, and counts; one connection, warm",
                "database | viewer | search | posts | searches | p50, ms | p99 | scan p50 | ratio of p50 | parts | target | met",
            ),
            growth: Table::new(
                "find: p50 with ten times as many posts, times that before",
                "database | viewer | search | Driftline | scan | target | met",
            ),
            index: Table::new(
                "find: the index",
                "database | public posts | all posts | posts/s | target | met | MB | MB of texts | of texts | target | met",
            ),
        }
    }

    fn measure(
        &mut self,
        database: &str,
        sites: &mut [Site; 2],
        rounds: usize,
    ) -> Result<(), Failure> {
        for _ in 0..rounds {
            for site in &mut *sites {
                site.round()?;
            }
        }
        let [small, large] = sites;
        for site in [&*small, &*large] {
            for case in &site.cases {
                let [ours, scan] = [0, 1].map(|way| case.quantiles(way));
                let p50 = |times: &Vec<Duration>| Times::of(times.clone()).p50;
                let ratio: Spread = case.times.ratio(0, 1, p50);
                let searches: usize = case.times.0.iter().map(|round| round[0].len()).sum();
                let max_ms = case.kind.max_ms;
                let target = format!("p99 < {max_ms} ms | {}", met(ours.p99 < max_ms));
                self.searches.row(format!(
                    "{database} | {} | {} | {} | {searches} | {:.2} | {:.2} | {:.2} | {ratio} | {} | {target}",
                    case.viewer_name(), case.kind.name, site.corpus.posts, ours.p50, ours.p99, scan.p50, case.parts,
                ));
            }
        }
        for (small, large) in small.cases.iter().zip(&large.cases) {
            let [ours, scan] =
                [0, 1].map(|way| large.quantiles(way).p50 / small.quantiles(way).p50);
            let growth = large.kind.max_growth;
            self.growth.row(format!(
                "{database} | {} | {} | {ours:.2} | {scan:.2} | <= {growth} | {}",
                large.viewer_name(),
                large.kind.name,
                met(ours <= growth),
            ));
        }
        Ok(())
    }

    fn print(&self, is_of_commits: bool) {
        if !is_of_commits {
            self.searches.print();
            self.growth.print();
        }
        self.index.print();
    }
}

/// The sizes of the index and of the texts, in MB.
fn sizes_mb(place: &Place) -> Result<[f64; 2], Failure> {
    let bytes = match place {
        Place::File(path) => {
            let sql = "select (select sum(pgsize) from dbstat where aggregate = true and name = t.name) from sqlite_schema t
                 where t.name glob 'place_terms_*' or t.name glob 'indexed_place*'";
            let connection = rusqlite::Connection::open(path)?;
            let mut statement = connection.prepare(sql)?;
            let parts = statement.query_map([], |row| row.get::<_, Option<i64>>(0))?;
            let index: i64 = parts
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .sum();
            let sql = "select coalesce(sum(length(cast(text as blob))), 0) from post_text";
            [index, connection.query_row(sql, [], |row| row.get(0))?]
        }
        Place::Url(url) => {
            let sql = "select pg_total_relation_size('indexed_place'),
                 (select coalesce(sum(octet_length(text)), 0)::bigint from post_text)";
            let row = postgres::Client::connect(url, NoTls)?.query_one(sql, &[])?;
            [row.get(0), row.get(1)]
        }
    };
    Ok(bytes.map(|bytes: i64| bytes as f64 / 1e6))
}

/// The number of searches of one case in a round.
const SEARCHES: usize = 20;
const SCANS: usize = 5;
const LONG: Duration = Duration::from_secs(10);
const INDEXED_PER_S: f64 = 1_000.0;
