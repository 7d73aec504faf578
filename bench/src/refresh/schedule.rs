//! `schedule`: posts put into the store with their freshness and their due times.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use driftline_db::testing::Cluster;
use driftline_store::{SecretUrl, Store, Target};

use super::{
    Database, Options, compare,
    made::{FIRST_PAGE_MS, Pages},
};
use crate::{
    Effort,
    failure::Failure,
    ingest::{
        Intake, add_source, add_source_named, bare, page,
        postgres_peer::{self, Clock},
        sqlite_peer,
    },
    table::Table,
};

/// Measures both databases.
pub(super) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let posts = options.posts(effort);
    let rounds = effort.rounds(3);
    let mut table = Table::new(
        format!(
            "refresh schedule: {posts} posts stored with all their rows and due times, in pages of \
             {}, a commit a page",
            crate::pages::LIMIT
        ),
        super::COLUMNS,
    );
    if options.has(Database::Sqlite) {
        table.row(compare(
            "SQLite, synchronous = full, 1 source".to_owned(),
            posts,
            rounds,
            || {
                let folder = tempfile::tempdir()?;
                sqlite(&folder.path().join("ours.db"), posts)
            },
            || {
                let folder = tempfile::tempdir()?;
                sqlite_bare(&folder.path().join("bare.db"), posts)
            },
        )?);
    }
    if options.has(Database::Postgres) {
        let cluster = Cluster::start()?;
        let schema = |who: &str| {
            format!("{who}_{:?}", Instant::now())
                .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
                .to_lowercase()
        };
        for (clock, words) in [
            (Clock::Held, "the bare driver holds the clock too"),
            (
                Clock::Free,
                "the bare driver's sources do not wait for each other",
            ),
        ] {
            table.row(compare(
                format!("PostgreSQL, {SOURCES} sources, a worker each; {words}"),
                posts,
                rounds,
                || postgres(cluster.url(), &schema("ours"), posts),
                || postgres_bare(cluster.url(), &schema("bare"), posts, clock),
            )?);
        }
    }
    table.print();
    println!(
        "reading the pages' JSON, and hashing it, is outside the figure on SQLite and in both on \
         PostgreSQL; the bare driver knows no gaps, anchors or leases and hashes the text alone; \
         where its sources do not wait for each other its order of commits is not that of its IDs, \
         and a reader can pass a post that is committed later"
    );
    Ok(())
}

/// Takes pages in; how many posts, and the time in commits alone.
fn sqlite(path: &Path, posts: u64) -> Result<(u64, Duration), Failure> {
    let store = Store::open(Target::Sqlite {
        path: path.to_owned(),
    })?;
    let source = add_source(&store)?;
    let mut intake = Intake::start(&store, source, FIRST_PAGE_MS)?;
    let mut spent = Duration::ZERO;
    let mut pages = Pages::new(0, posts);
    while let Some(raw) = pages.next()? {
        let page = page(&raw)?;
        let start = Instant::now();
        intake.commit(page)?;
        spent += start.elapsed();
    }
    let stored = intake.stored();
    store.close_blocking();
    Ok((stored, spent))
}

fn sqlite_bare(path: &Path, posts: u64) -> Result<(u64, Duration), Failure> {
    let mut writer = sqlite_peer::Writer::open(path)?;
    let mut spent = Duration::ZERO;
    let mut pages = Pages::new(0, posts);
    while let Some(raw) = pages.next()? {
        let rows = bare::rows(&raw)?;
        let start = Instant::now();
        writer.commit(&rows, raw.at_ms)?;
        spent += start.elapsed();
    }
    Ok((writer.stored()?, spent))
}

/// A source's worker: how many posts it has stored.
type Work<'s> = Box<dyn FnOnce() -> Result<u64, Failure> + Send + 's>;

fn postgres(url: &str, schema: &str, posts: u64) -> Result<(u64, Duration), Failure> {
    let store = open(url, schema)?;
    let mut work: Vec<Work<'_>> = Vec::new();
    for number in 0..SOURCES {
        let source = add_source_named(&store, &format!("bench{number}"))?;
        let mut intake = Intake::start(&store, source, FIRST_PAGE_MS)?;
        work.push(Box::new(move || {
            let mut pages = Pages::new(number, share(posts, number));
            while let Some(raw) = pages.next()? {
                intake.commit(page(&raw)?)?;
            }
            Ok(intake.stored())
        }));
    }
    let done = at_once(work);
    store.close_blocking();
    done
}

fn postgres_bare(
    url: &str,
    schema: &str,
    posts: u64,
    clock: Clock,
) -> Result<(u64, Duration), Failure> {
    let store = open(url, schema)?;
    let mut work: Vec<Work<'_>> = Vec::new();
    for number in 0..SOURCES {
        add_source_named(&store, &format!("bench{number}"))?;
        let source = i64::try_from(number)? + 1;
        let mut writer = postgres_peer::Writer::connect(url, schema, source, clock)?;
        work.push(Box::new(move || {
            let mut stored = 0;
            let mut pages = Pages::new(number, share(posts, number));
            while let Some(raw) = pages.next()? {
                writer.commit(&bare::rows(&raw)?, raw.at_ms)?;
                stored += raw.new;
            }
            Ok(stored)
        }));
    }
    store.close_blocking();
    at_once(work)
}

fn open(url: &str, schema: &str) -> Result<Store, Failure> {
    Ok(Store::open(Target::Postgres {
        url: SecretUrl::new(url),
        schema: Some(schema.to_owned()),
    })?)
}

/// The posts of one of the sources.
fn share(posts: u64, number: u64) -> u64 {
    posts / SOURCES + u64::from(number < posts % SOURCES)
}

/// Runs workers at once; what they did in all, and the time.
fn at_once(work: Vec<Work<'_>>) -> Result<(u64, Duration), Failure> {
    let start = Instant::now();
    let done = thread::scope(|scope| {
        let started: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
        started
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(Failure::new("a worker panicked")))
            })
            .sum::<Result<u64, Failure>>()
    })?;
    Ok((done, start.elapsed()))
}

const SOURCES: u64 = 4;
