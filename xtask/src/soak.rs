use std::time::Instant;

use clap::Args;

use crate::error::TaskError;
use crate::seeds::{DRAWN, KILLS, SIMULATIONS};
use crate::setup;
use crate::workspace::Workspace;

/// What `cargo xtask soak` takes.
#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// How many times as many seeds each simulation runs as in the suite
    #[arg(long, default_value_t = 10)]
    times: u64,
    /// How many times the kill tests kill
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// How many processes share the work, of which some are ended at each number of them
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// How many inputs each test of a codec draws
    #[arg(long, default_value_t = 1_000_000)]
    cases: u32,
}

/// Runs every simulation on many seeds and the kill tests many times, built for release. What fails
/// keeps nothing after it from running.
pub(crate) fn run(workspace: &Workspace, args: &SoakArgs) -> Result<(), TaskError> {
    setup::run(workspace)?;
    let variables = [
        ("DRIFTLINE_TIMES", args.times.to_string()),
        ("DRIFTLINE_KILLS", args.kills.to_string()),
        ("DRIFTLINE_PROCESSES", args.processes.to_string()),
        ("PROPTEST_CASES", args.cases.to_string()),
    ];
    let mut failed = Vec::new();
    for test in SIMULATIONS.iter().chain(&DRAWN).chain(&KILLS) {
        let began = Instant::now();
        let result = test.run(workspace, &["--release"], &variables);
        eprintln!("{} took {} s", test.name, began.elapsed().as_secs());
        if result.is_err() {
            failed.push(test.name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(TaskError::message(format!("failed: {}", failed.join(", ")))),
    }
}
