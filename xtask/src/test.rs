use clap::Args;
use xshell::cmd;

use crate::error::TaskError;
use crate::setup::{self, python};
use crate::workspace::{Workspace, run as run_program};

/// What `cargo xtask test` takes.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Runs only the tests whose name contains this
    #[arg(long)]
    filter: Option<String>,
}

/// Sets the machine up and runs every test of the workspace.
///
/// Each test process that needs PostgreSQL starts a throw-away cluster of its own, so that this
/// and a plain `cargo test` are the same; `DRIFTLINE_TEST_POSTGRES_URL` names one to use instead.
pub(crate) fn run(workspace: &Workspace, args: &TestArgs) -> Result<(), TaskError> {
    setup::run(workspace)?;
    let filter = &args.filter;
    let shell = &workspace.shell;
    let tests = cmd!(
        shell,
        "cargo test --workspace --locked --no-fail-fast {filter...}"
    );
    run_program(tests.env(python::VARIABLE, python::interpreter(workspace)))
}
