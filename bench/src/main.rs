//! Driftline's benchmarks, each beside a peer in the same run.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml -- NAME`. Each prints one table: the
//! figure, the peer's figure of the same run, the ratio (median of interleaved rounds with the
//! least and the most), the load of the machine, the target and whether it is met. Nothing is
//! kept.

mod cpu;
mod failure;
mod fetched;
mod id;
mod ingest;
mod load;
mod pages;
mod policy;
mod read;
mod rounds;
mod sources;
mod table;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::{failure::Failure, load::Load};

/// As the server's binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(
    name = "driftline-bench",
    about = "Driftline's benchmarks beside their peers"
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
    /// Interleaved rounds (seeds, for `fetched`); each benchmark has its own default
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// A smoke run: sizes so small that the figures mean nothing
    #[arg(long, global = true)]
    quick: bool,
}

impl Effort {
    /// The rounds to run: as asked for, else `usual`, else 1 for a smoke run.
    fn rounds(self, usual: usize) -> usize {
        let default = if self.quick { 1 } else { usual };
        self.rounds.unwrap_or(default).max(1)
    }
}

#[derive(Debug, Subcommand)]
enum Name {
    /// Pages as JSON to committed posts, beside a bare driver that writes the same rows
    Ingest,
    /// Pages of timelines over HTTP, beside a bare handler
    Read(read::Options),
    /// What 200 sources cost, beside a bare loop that stores nothing
    Sources,
    /// Posts fetched per post stored, in virtual time, beside the usual pollers
    Fetched(fetched::Options),
    /// Change that goes unseen under each refresh policy at equal requests, in virtual time
    Policy(policy::Options),
    /// IDs: the generator beside other generators, the service beside Redis
    Id(id::Options),
    /// All of them
    All(id::Options),
    /// The process that `sources` measures
    #[command(hide = true)]
    PollSources(sources::ChildOptions),
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
    if let Name::PollSources(options) = name {
        return sources::run_child(options);
    }
    let before = Load::now();
    match name {
        Name::Ingest => ingest::run(effort)?,
        Name::Read(options) => read::run(*options, effort)?,
        Name::Sources => sources::run(effort)?,
        Name::Fetched(options) => fetched::run(options, effort)?,
        Name::Policy(options) => policy::run(options, effort)?,
        Name::Id(options) => id::run(options, effort)?,
        Name::All(options) => {
            ingest::run(effort)?;
            read::run(read::Options::default(), effort)?;
            sources::run(effort)?;
            fetched::run(&fetched::Options::default(), effort)?;
            policy::run(&policy::Options::default(), effort)?;
            id::run(options, effort)?;
        }
        Name::PollSources(_) => {}
    }
    println!("load average: {before} before, {} after", Load::now());
    Ok(())
}
