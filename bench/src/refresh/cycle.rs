//! `cycle`: claim, save and reschedule all due posts in batches of 100.

use std::time::Duration;

use driftline_core::refresh::Policy;

use super::{
    database::{Postgres, SqliteFile},
    fill::Width,
    made,
    ours::Worker,
    sqlite_peer::Peer,
};
use crate::{
    Effort, cpu,
    failure::Failure,
    rounds::Pairs,
    table::{Table, met},
};

/// Measures SQLite next to a bare driver, and four workers of PostgreSQL next to one alone.
pub(super) fn run(posts: u64, effort: Effort) -> Result<(), Failure> {
    let rounds = effort.rounds(3);
    let mut table = Table::new(
        format!("refresh cycle: {posts} due posts, claimed and saved in batches of 100"),
        [
            "what",
            "posts/s",
            "next to",
            "posts/s",
            "ratio",
            "target",
            "met",
            "CPU of this process, us/post",
        ],
    );
    let mut row = |what: String, next_to: &str, pairs: &Pairs<Figures>, target: Option<f64>| {
        let [ours, peer, ratio] = pairs.cells(|f| f.per_s, 0);
        let [cpu, peer_cpu, _] = pairs.cells(|f| f.cpu_us, 1);
        let is_met = |least| met(pairs.ratio(|f| f.per_s).median >= least);
        table.row([
            what,
            ours,
            next_to.to_owned(),
            peer,
            ratio,
            target.map_or_else(String::new, |least| format!(">= {least}")),
            target.map_or_else(String::new, is_met),
            format!("{cpu} / {peer_cpu}"),
        ]);
    };
    let file = SqliteFile::fill(posts, Width::Full)?;
    let ours = || {
        let copy = file.copy()?;
        let store = copy.store()?;
        let done = Worker::new(&store, file.instance, Policy::default()).work_off();
        store.close_blocking();
        done
    };
    let bare = || {
        let copy = file.copy()?;
        Peer::open(copy.path())?.work_off()
    };
    let pairs = Pairs::measure(rounds, || figures(posts, ours), || figures(posts, bare))?;
    let name = format!(
        "SQLite, {} MB, synchronous = full, 1 worker",
        file.megabytes()?
    );
    row(name, "bare rusqlite", &pairs, Some(TARGET));
    let cluster = Postgres::start()?;
    let filled = cluster.fill("filled", posts, Width::Full)?;
    let with = |workers| {
        cluster.copy(&filled, "copied")?;
        let store = cluster.store("copied")?;
        let worker = Worker::new(&store, filled.instance, Policy::default());
        let done = worker.work_off_with(workers);
        store.close_blocking();
        cluster.drop("copied")?;
        done
    };
    let several = || figures(posts, || with(WORKERS));
    let pairs = Pairs::measure(rounds, several, || figures(posts, || with(1)))?;
    let name = format!(
        "PostgreSQL, {} MB, {WORKERS} workers",
        cluster.megabytes(&filled)?
    );
    row(name, "1 worker alone", &pairs, None);
    table.print();
    println!(
        "{}; the bare driver compares counts alone, where Driftline hashes what an author can edit; \
         the CPU includes making the answers and copying the file, and no server's",
        made::CHANGED
    );
    Ok(())
}

/// The figures of one round.
struct Figures {
    per_s: f64,
    cpu_us: f64,
}

fn figures(
    posts: u64,
    work: impl FnOnce() -> Result<(u64, Duration), Failure>,
) -> Result<Figures, Failure> {
    let before = cpu::of_process(std::process::id())?;
    let (done, spent) = work()?;
    let used = cpu::of_process(std::process::id())? - before;
    match done == posts {
        true => Ok(Figures {
            per_s: done as f64 / spent.as_secs_f64(),
            cpu_us: used.as_secs_f64() * 1e6 / done as f64,
        }),
        false => Err(Failure::new(format!("{done} posts came of {posts}"))),
    }
}

const WORKERS: u64 = 4;
const TARGET: f64 = 0.8;
