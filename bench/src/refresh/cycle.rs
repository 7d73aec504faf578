//! `cycle`: claim, save and reschedule all due posts in batches of 100.

use driftline_core::refresh::Policy;

use super::{
    Database, Options, compare,
    database::{Postgres, SqliteFile},
    fill::Width,
    made,
    ours::Worker,
    postgres_peer,
    sqlite_peer::Peer,
};
use crate::{Effort, failure::Failure, table::Table};

/// Measures both databases.
pub(super) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let posts = options.posts(effort);
    let rounds = effort.rounds(3);
    let mut table = Table::new(
        format!("refresh cycle: {posts} due posts, claimed and saved in batches of 100"),
        super::COLUMNS,
    );
    if options.has(Database::Sqlite) {
        table.row(sqlite(posts, rounds)?);
    }
    if options.has(Database::Postgres) {
        table.row(postgres(posts, rounds)?);
    }
    table.print();
    println!(
        "{}; the bare driver compares counts alone, where Driftline hashes what an author can edit; \
         the CPU includes making the answers and copying the file, and no server's",
        made::CHANGED
    );
    Ok(())
}

fn sqlite(posts: u64, rounds: usize) -> Result<[String; 7], Failure> {
    let file = SqliteFile::fill(posts, Width::Full)?;
    let name = format!(
        "SQLite, {} MB, synchronous = full, 1 worker",
        file.megabytes()?
    );
    compare(
        name,
        posts,
        rounds,
        || {
            let copy = file.copy()?;
            let store = copy.store()?;
            let done = Worker::new(&store, file.instance, Policy::default()).work_off();
            store.close_blocking();
            done
        },
        || {
            let copy = file.copy()?;
            Peer::open(copy.path())?.work_off()
        },
    )
}

fn postgres(posts: u64, rounds: usize) -> Result<[String; 7], Failure> {
    let cluster = Postgres::start()?;
    let filled = cluster.fill("filled", posts, Width::Full)?;
    let size = cluster.megabytes(&filled)?;
    compare(
        format!("PostgreSQL, {size} MB, {WORKERS} workers"),
        posts,
        rounds,
        || {
            cluster.copy(&filled, "ours")?;
            let store = cluster.store("ours")?;
            let worker = Worker::new(&store, filled.instance, Policy::default());
            let done = worker.work_off_with(WORKERS);
            store.close_blocking();
            cluster.drop("ours")?;
            done
        },
        || {
            cluster.copy(&filled, "bare")?;
            let done = postgres_peer::work_off_with(&cluster.url("bare"), WORKERS);
            cluster.drop("bare")?;
            done
        },
    )
}

const WORKERS: u64 = 4;
