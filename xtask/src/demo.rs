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

/// Builds Driftline as the tests do, so that both share one build, and runs its demo.
pub(crate) fn run(workspace: &Workspace, args: &DemoArgs) -> Result<(), TaskError> {
    let folder = workspace.build(&["--bin", "driftline"])?;
    let driftline = folder.join("driftline");
    let args = &args.args;
    run_program(cmd!(workspace.shell, "{driftline} demo {args...}"))
}
