//! `refresh`: due times, claims and saves, next to bare drivers.

mod bare;
mod cycle;
mod database;
mod fill;
mod latency;
mod made;
mod memory;
mod ours;
mod postgres_peer;
mod schedule;
mod sqlite_peer;

use std::time::Duration;

use clap::{Args, ValueEnum};

pub(crate) use self::memory::{ChildOptions, run_child};
use crate::{Effort, cpu, failure::Failure, rounds::Spread, table::met};

/// What `refresh` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many posts are due
    #[arg(long, default_value_t = 1_000_000)]
    posts: u64,
    /// How many narrow rows the largest schedule has, for claims' latency and for memory
    #[arg(long, default_value_t = 10_000_000)]
    scheduled: u64,
    /// Only one of its parts
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Only one of the databases
    #[arg(long, value_enum)]
    database: Option<Database>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Posts put into the store with their due times, next to bare drivers
    Schedule,
    /// Due posts claimed and saved, next to bare drivers
    Cycle,
    /// Claims in small and in large schedules
    Latency,
    /// The memory of a process that works on a large schedule
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

impl Options {
    fn posts(&self, effort: Effort) -> u64 {
        if effort.quick { 2_000 } else { self.posts }
    }

    /// The sizes of schedules, ascending.
    fn sizes(&self, effort: Effort) -> Vec<u64> {
        if effort.quick {
            return vec![1_000, 10_000];
        }
        let smaller = SIZES.into_iter().filter(|size| *size < self.scheduled);
        smaller.chain([self.scheduled]).collect()
    }

    fn has(&self, database: Database) -> bool {
        self.database.is_none_or(|only| only == database)
    }

    fn runs(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Measures all of its parts, or one.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    if options.runs(Part::Schedule) {
        schedule::run(options, effort)?;
    }
    if options.runs(Part::Cycle) {
        cycle::run(options, effort)?;
    }
    if options.runs(Part::Latency) {
        latency::run(options, effort)?;
    }
    if options.runs(Part::Memory) {
        memory::run(options, effort)?;
    }
    Ok(())
}

/// Interleaves rounds of both and takes turns in who comes first.
fn compare(
    database: String,
    posts: u64,
    rounds: usize,
    ours: impl Fn() -> Result<(u64, Duration), Failure>,
    peer: impl Fn() -> Result<(u64, Duration), Failure>,
) -> Result<[String; 7], Failure> {
    let speed = |work: &dyn Fn() -> Result<(u64, Duration), Failure>| {
        let before = cpu::of_process(std::process::id())?;
        let (done, spent) = work()?;
        let used = cpu::of_process(std::process::id())? - before;
        if done == posts {
            Ok((
                done as f64 / spent.as_secs_f64(),
                used.as_secs_f64() * 1e6 / done as f64,
            ))
        } else {
            Err(Failure::new(format!("{done} posts came of {posts}")))
        }
    };
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            of_ours.push(speed(&ours)?);
            of_peer.push(speed(&peer)?);
        } else {
            of_peer.push(speed(&peer)?);
            of_ours.push(speed(&ours)?);
        }
    }
    let ratios = of_ours
        .iter()
        .zip(&of_peer)
        .map(|(ours, peer)| ours.0 / peer.0);
    let ratio = Spread::of(ratios, 2);
    let speeds = |figures: &[(f64, f64)]| Spread::of(figures.iter().map(|f| f.0), 0).to_string();
    let cpus = |figures: &[(f64, f64)]| Spread::of(figures.iter().map(|f| f.1), 1).to_string();
    Ok([
        database,
        speeds(&of_ours),
        speeds(&of_peer),
        ratio.to_string(),
        format!(">= {TARGET}"),
        met(ratio.median >= TARGET),
        format!("{} / {}", cpus(&of_ours), cpus(&of_peer)),
    ])
}

const COLUMNS: [&str; 7] = [
    "database",
    "Driftline, posts/s",
    "bare driver, posts/s",
    "ratio",
    "target",
    "met",
    "CPU of this process, us/post",
];
const TARGET: f64 = 0.8;
const SIZES: [u64; 2] = [10_000, 1_000_000];
