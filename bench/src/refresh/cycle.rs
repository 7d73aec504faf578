//! `cycle`: claim, save and reschedule all due posts in batches of 100.

use std::time::Duration;

use driftline_core::refresh::Policy;

use super::{
    fill::{Filled, Width},
    made,
    ours::Worker,
    sqlite_peer::Peer,
};
use crate::{
    Effort, cpu,
    database::Server,
    failure::Failure,
    rounds::Pairs,
    table::{Table, Target},
};

/// Measures SQLite next to a bare driver, and four workers of PostgreSQL next to one alone.
pub(super) fn run(posts: u64, effort: Effort) -> Result<(), Failure> {
    let rounds = effort.rounds(3);
    let mut table = Table::new(
        format!("refresh cycle: {posts} due posts, claimed and saved in batches of 100"),
        "database | figure | Driftline | peer | ratio | target | met",
    );
    let mut rows = |name: &str, filled: &Filled, pairs: &Pairs<Figures>, target| {
        let name = format!("{name}, {} MB", filled.place.megabytes()?);
        table.compare(format!("{name} | posts/s"), pairs, |f| f.per_s, 0, target);
        let cpu = format!("{name} | CPU of this process, us/post");
        table.compare(cpu, pairs, |f| f.cpu_us, 1, Target::Any);
        Ok::<_, Failure>(())
    };
    let with = |filled: &Filled, workers: u64| {
        let store = filled.copy()?.open()?;
        let mut worker = Worker::new(&store, filled.instance, Policy::default());
        let done = match workers {
            1 => worker.work_off(),
            _ => worker.work_off_with(workers),
        };
        store.close_blocking();
        done
    };
    let filled = Filled::new(Server::sqlite()?, posts, Width::Full)?;
    let pairs = Pairs::measure(
        rounds,
        || figures(posts, || with(&filled, 1)),
        || figures(posts, || Peer::open(&filled.copy()?)?.work_off()),
    )?;
    let name = "SQLite, synchronous = full, 1 worker; bare rusqlite";
    rows(name, &filled, &pairs, Target::OfPeer(0.8))?;
    let filled = Filled::new(Server::postgres()?, posts, Width::Full)?;
    let with = |workers| figures(posts, || with(&filled, workers));
    let pairs = Pairs::measure(rounds, || with(WORKERS), || with(1))?;
    let name = format!("PostgreSQL, {WORKERS} workers; 1 alone");
    rows(&name, &filled, &pairs, Target::Any)?;
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
