//! `ingest`: pages as JSON to committed posts, next to a bare driver that writes the same rows.

mod bare;
mod ours;
mod postgres_peer;
pub(crate) mod sqlite_peer;

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use driftline_db::testing::Cluster;
use driftline_store::{SecretUrl, Target};

pub(crate) use self::ours::{Intake, add_source, add_source_of, page};
use crate::{
    Effort,
    failure::Failure,
    pages::{self, RawPage},
    rounds::Pairs,
    table::{Table, met},
};

/// Measures both databases.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 800 } else { 20_000 };
    let pages = pages::forward(posts)?;
    let bytes: usize = pages.iter().map(|page| page.body.len()).sum();
    let listed = pages.len() * usize::from(pages::LIMIT);
    let mut table = Table::new(
        format!(
            "ingest: {posts} posts in pages of {} ({} bytes a post as JSON), a commit a page",
            pages::LIMIT,
            bytes / listed
        ),
        [
            "database",
            "Driftline, posts/s",
            "bare driver, posts/s",
            "ratio",
            "target",
            "met",
        ],
    );
    let rounds = effort.rounds(5);
    table.row(sqlite(&pages, rounds)?);
    table.row(postgres(&pages, rounds)?);
    table.print();
    Ok(())
}

fn sqlite(pages: &[RawPage], rounds: usize) -> Result<[String; 6], Failure> {
    measure(
        "SQLite, synchronous = full",
        rounds,
        || {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("ours.db");
            ours::ingest(Target::Sqlite { path }, pages)
        },
        || {
            let folder = tempfile::tempdir()?;
            sqlite_peer::ingest(&folder.path().join("bare.db"), pages)
        },
    )
}

fn postgres(pages: &[RawPage], rounds: usize) -> Result<[String; 6], Failure> {
    // As for the tests, a cluster that is there already may serve.
    let (url, _cluster) = match std::env::var("DRIFTLINE_TEST_POSTGRES_URL") {
        Ok(url) => (url, None),
        Err(_) => {
            let cluster = Cluster::start()?;
            (cluster.url().to_owned(), Some(cluster))
        }
    };
    let made = Cell::new(0);
    let name = || {
        made.set(made.get() + 1);
        format!("bench_{}_{}", std::process::id(), made.get())
    };
    let target = |schema: &str| Target::Postgres {
        url: SecretUrl::new(url.as_str()),
        schema: Some(schema.to_owned()),
    };
    measure(
        "PostgreSQL, on this machine",
        rounds,
        || ours::ingest(target(&name()), pages),
        || {
            let schema = name();
            postgres_peer::ingest(target(&schema), &url, &schema, pages)
        },
    )
}

/// The row of a database, fresh for each round.
fn measure(
    database: &str,
    rounds: usize,
    ours: impl Fn() -> Result<Speed, Failure>,
    peer: impl Fn() -> Result<Speed, Failure>,
) -> Result<[String; 6], Failure> {
    let pairs = Pairs::measure(rounds, ours, peer)?;
    let speed = |speed: &Speed| speed.posts_per_s();
    let [ours, peer, ratio] = pairs.cells(speed, 0);
    let is_met = pairs.ratio(speed).median >= TARGET;
    let target = format!(">= {TARGET}");
    Ok([database.to_owned(), ours, peer, ratio, target, met(is_met)])
}

/// Posts that were committed in a time.
#[derive(Debug, Clone, Copy)]
struct Speed {
    posts: u64,
    spent: Duration,
}

impl Speed {
    /// What was stored since a moment.
    fn since(start: Instant, posts: u64) -> Self {
        let spent = start.elapsed();
        Self { posts, spent }
    }

    /// Itself, if so many posts are stored as were counted.
    fn of_all_stored(self, stored: u64) -> Result<Self, Failure> {
        if stored == self.posts {
            return Ok(self);
        }
        let posts = self.posts;
        Err(Failure::new(format!(
            "{stored} of {posts} posts are stored"
        )))
    }

    fn posts_per_s(self) -> f64 {
        self.posts as f64 / self.spent.as_secs_f64()
    }
}

/// How many posts all pages bring.
fn new_posts(pages: &[RawPage]) -> u64 {
    pages.iter().map(|page| page.new).sum()
}

const TARGET: f64 = 0.7;
