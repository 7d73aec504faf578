//! Developer commands: `cargo xtask --help` lists them.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod ci;
mod demo;
mod error;
mod fuzz;
mod live;
mod seeds;
mod setup;
mod sim;
mod soak;
mod test;
mod tidy;
mod toot;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::TaskError;
use crate::workspace::Workspace;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), TaskError> {
    let workspace = Workspace::open()?;
    match command {
        Command::Setup => setup::run(&workspace),
        Command::Test(args) => test::run(&workspace, &args),
        Command::Demo(args) => demo::run(&workspace, &args),
        Command::Ci => ci::run(&workspace),
        Command::Tidy => tidy::run(&workspace),
        Command::Sim(args) => sim::run(&workspace, &args),
        Command::Soak(args) => soak::run(&workspace, &args),
        Command::Fuzz(args) => fuzz::run(&workspace, &args),
        Command::Live(args) => live::run(&workspace, &args),
        Command::TestToot(args) => toot::run(&workspace, &args),
        Command::Bench(args) => bench::run(&workspace, &args),
    }
}

/// Driftline's developer commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Installs what the tests need beyond Rust, Node and a package manager
    Setup,
    /// Runs every test, after `setup`
    Test(test::TestArgs),
    /// Runs Driftline's demo
    #[command(disable_help_flag = true)]
    Demo(demo::DemoArgs),
    /// Runs every check that a change must pass
    Ci,
    /// Checks the rules of the house: who knows whom, file lengths, leftovers
    Tidy,
    /// Replays one seed of the simulations
    Sim(sim::SimArgs),
    /// Runs the simulations on many seeds, and the kill tests many times
    Soak(soak::SoakArgs),
    /// Feeds the parsers with inputs that libFuzzer makes, for a bounded time
    Fuzz(fuzz::FuzzArgs),
    /// Mirrors a real server on loopback, kills both on the way, and compares
    Live(live::LiveArgs),
    /// Runs the tests of toot's authors against Driftline, and says which pass
    TestToot(toot::TootArgs),
    /// Runs the benchmarks of `bench/`
    Bench(bench::BenchArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_demo_takes_any_flag() {
        let line = ["xtask", "demo", "--help", "--port", "0"];
        let Command::Demo(args) = Cli::parse_from(line).command else {
            panic!("not a demo");
        };
        assert_eq!(args.args, ["--help", "--port", "0"]);
    }
}
