use clap::Args;

use crate::error::TaskError;
use crate::seeds::{SEEDED, SIMULATIONS};
use crate::setup;
use crate::workspace::Workspace;

/// What `cargo xtask sim` takes.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The seed to replay, as the failing test named it
    #[arg(long)]
    seed: u64,
    /// Hours of simulated time, where a simulation lets them be chosen
    #[arg(long)]
    hours: Option<u64>,
    /// Print each step, where a simulation can
    #[arg(long)]
    trace: bool,
}

/// Replays one seed of every simulation, and of the other tests that run under one.
pub(crate) fn run(workspace: &Workspace, args: &SimArgs) -> Result<(), TaskError> {
    setup::run(workspace)?;
    let mut variables = vec![("DRIFTLINE_SEED", args.seed.to_string())];
    if let Some(hours) = args.hours {
        variables.push(("DRIFTLINE_HOURS", hours.to_string()));
    }
    if args.trace {
        variables.push(("DRIFTLINE_TRACE", "1".to_owned()));
    }
    for test in SIMULATIONS.iter().chain(&SEEDED) {
        test.run(workspace, &[], &variables)?;
    }
    Ok(())
}
