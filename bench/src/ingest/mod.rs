//! `ingest`: pages as JSON to committed posts, next to a bare driver that writes the same rows.

mod bare;
mod ours;
mod postgres_peer;
pub(crate) mod sqlite_peer;

use std::{
    cell::Cell,
    path::PathBuf,
    time::{Duration, Instant},
};

use driftline_db::testing::Cluster;
use driftline_store::Target;

pub(crate) use self::ours::{Intake, add_source, new_source, page};
use crate::{
    Effort,
    database::postgres_target,
    failure::Failure,
    pages::{self, RawPage},
    rounds::Pairs,
    table::{self, Table},
};

/// Measures both databases.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 800 } else { 20_000 };
    let pages = pages::forward(posts)?;
    let bytes: usize = pages.iter().map(|page| page.body.len()).sum();
    let bytes = bytes / (pages.len() * usize::from(pages::LIMIT));
    let mut table = Table::new(
        format!(
            "ingest: {posts} posts in pages of {} ({bytes} bytes a post as JSON), a commit a page",
            pages::LIMIT
        ),
        "database | Driftline, posts/s | bare driver, posts/s | ratio | target | met",
    );
    let in_file = |ingest: fn(PathBuf, &[RawPage]) -> Result<Speed, Failure>| {
        let folder = tempfile::tempdir()?;
        ingest(folder.path().join("driftline.db"), &pages)
    };
    let pairs = Pairs::measure(
        effort.rounds(5),
        || in_file(|path, pages| ours::ingest(Target::Sqlite { path }, pages)),
        || in_file(|path, pages| sqlite_peer::ingest(&path, pages)),
    )?;
    let target = table::Target::OfPeer(TARGET);
    let database = "SQLite, synchronous = full";
    table.compare(database, &pairs, Speed::posts_per_s, 0, target);
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
    let pairs = Pairs::measure(
        effort.rounds(5),
        || ours::ingest(postgres_target(&url, Some(name())), &pages),
        || postgres_peer::ingest(&url, &name(), &pages),
    )?;
    let database = "PostgreSQL, on this machine";
    table.compare(database, &pairs, Speed::posts_per_s, 0, target);
    table.print();
    Ok(())
}

/// Posts that were committed in a time.
#[derive(Debug, Clone, Copy)]
struct Speed {
    posts: u64,
    spent: Duration,
}

impl Speed {
    /// The pages' posts, since a moment.
    fn since(start: Instant, pages: &[RawPage]) -> Self {
        Self {
            spent: start.elapsed(),
            posts: pages.iter().map(|page| page.new).sum(),
        }
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

    fn posts_per_s(&self) -> f64 {
        self.posts as f64 / self.spent.as_secs_f64()
    }
}

const TARGET: f64 = 0.7;
