//! Driftline's benchmarks, each next to a peer in the same run.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml -- NAME`. Each prints one table: the
//! figure, the peer's figure of the same run, the ratio (median of interleaved rounds with the
//! least and the most), the load of the machine, the target and whether it is met. Nothing is
//! kept.

mod backup;
mod commits;
mod cpu;
mod database;
mod distributed;
mod export;
mod failure;
mod feed;
mod find;
mod http;
mod id;
mod ingest;
mod load;
mod pages;
mod plan;
mod policy;
mod process;
mod read;
mod refresh;
mod rounds;
mod sources;
mod sync;
mod table;
mod tail;
mod threads;
mod track;
mod upstream;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::{
    failure::Failure,
    load::{Load, Times},
    process::Driftline,
};

/// As the server's binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(
    name = "driftline-bench",
    about = "Driftline's benchmarks next to their peers"
)]
struct Arguments {
    #[command(subcommand)]
    name: Name,
    #[command(flatten)]
    effort: Effort,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, Args)]
struct Effort {
    /// Interleaved rounds (seeds, in virtual time); each benchmark has its own default
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// A smoke run: sizes so small that the figures mean nothing
    #[arg(long, global = true)]
    quick: bool,
}

impl Effort {
    /// The rounds to run: as asked for, else `full`, else 1 for a smoke run.
    fn rounds(self, full: usize) -> usize {
        let default = if self.quick { 1 } else { full };
        self.rounds.unwrap_or(default).max(1)
    }
}

#[derive(Debug, Subcommand)]
enum Name {
    /// Pages as JSON to committed posts, next to a bare driver that writes the same rows
    Ingest,
    /// Pages that several processes commit to one PostgreSQL, next to one that does so alone
    Commits,
    /// Commits and the public timeline on a Citus cluster, next to one PostgreSQL
    Distributed(distributed::Options),
    /// Pages of timelines over HTTP, next to a bare handler
    Read,
    /// Pages of home timelines over HTTP, next to a bare handler that finds the same posts
    Home,
    /// Searches, the search index and its lag, next to a scan of all texts
    Find(find::Options),
    /// From a commit to those who follow it as server-sent events, next to a bare broadcast
    Feed,
    /// From an answer of an upstream to the lines of `driftline tail`, next to a client of the server's events
    Tail(Driftline),
    /// A store's posts as files, next to the program `sqlite3`
    Export(Driftline),
    /// IDs that are looked up, next to a bare loop of the same requests and inserts
    Track(Driftline),
    /// Copies of a store that is written to, next to SQLite's own in one step
    Backup,
    /// What 200 sources cost, next to a bare loop that stores nothing
    Sources,
    /// What the timeline machine misses, fetches and delays over whole workloads, in virtual time
    Plan,
    /// Change that goes unseen under the value policy, next to the age table at equal requests, in virtual time
    Policy(policy::Options),
    /// IDs: the generator next to ferroid's, the service next to Redis
    Id(Driftline),
    /// Claims and saves of due posts, next to a bare driver
    Refresh(refresh::Options),
    /// Syncs of replicas, next to PouchDB and mbsync; a library of a million objects
    Sync(sync::Options),
    /// All of them that need no option
    All(Driftline),
    /// The process that `sources` measures
    #[command(hide = true)]
    PollSources(sources::ChildOptions),
    /// The process whose memory `home` measures
    #[command(hide = true)]
    HomeServe(read::ChildOptions),
    /// The process whose memory `refresh` measures
    #[command(hide = true)]
    RefreshMemory(refresh::ChildOptions),
}

fn main() -> ExitCode {
    let Arguments { name, effort } = Arguments::parse();
    match run(&name, effort) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("driftline-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &Name, effort: Effort) -> Result<(), Failure> {
    let (before, times) = (Load::now(), Times::now());
    match name {
        Name::Ingest => ingest::run(effort)?,
        Name::Commits => commits::run(effort)?,
        Name::Distributed(options) => distributed::run(options, effort)?,
        Name::Read => read::run(effort)?,
        Name::Home => read::home::run(effort)?,
        Name::Find(options) => find::run(options, effort)?,
        Name::Feed => feed::run(effort)?,
        Name::Tail(driftline) => tail::run(driftline, effort)?,
        Name::Export(driftline) => export::run(driftline, effort)?,
        Name::Track(driftline) => track::run(driftline, effort)?,
        Name::Backup => backup::run(effort)?,
        Name::Sources => sources::run(effort)?,
        Name::Plan => plan::run(effort),
        Name::Policy(options) => policy::run(options, effort)?,
        Name::Id(driftline) => id::run(driftline, effort)?,
        Name::Refresh(options) => refresh::run(options, effort)?,
        Name::Sync(options) => sync::run(options, effort)?,
        Name::All(driftline) => {
            ingest::run(effort)?;
            commits::run(effort)?;
            read::run(effort)?;
            feed::run(effort)?;
            tail::run(driftline, effort)?;
            export::run(driftline, effort)?;
            track::run(driftline, effort)?;
            backup::run(effort)?;
            sources::run(effort)?;
            policy::run(&policy::Options::default(), effort)?;
            id::run(driftline, effort)?;
            refresh::run(&refresh::Options::default(), effort)?;
        }
        Name::PollSources(options) => return sources::run_child(options),
        Name::RefreshMemory(options) => return refresh::run_child(options),
        Name::HomeServe(options) => return read::run_child(options),
    }
    println!(
        "load average: {before} before, {} after; stolen by the host: {:.1} %",
        Load::now(),
        times.stolen_since()
    );
    Ok(())
}
