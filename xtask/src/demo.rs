use clap::Args;
use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, run as run_program};

/// What `cargo xtask demo` takes.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Arguments of `driftline demo`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

/// Builds Driftline for release and runs its demo.
pub(crate) fn run(workspace: &Workspace, args: &DemoArgs) -> Result<(), TaskError> {
    let args = &args.args;
    let shell = &workspace.shell;
    run_program(cmd!(
        shell,
        "cargo run --release --locked --package driftline -- demo {args...}"
    ))
}
