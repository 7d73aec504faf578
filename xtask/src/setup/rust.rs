use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, run as run_program, succeeds};

/// Adds rustfmt and clippy, which rustup's minimal profile lacks.
pub(super) fn install_components(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let mut missing = Vec::new();
    if !succeeds(cmd!(shell, "cargo fmt --version")) {
        missing.push("rustfmt");
    }
    if !succeeds(cmd!(shell, "cargo clippy --version")) {
        missing.push("clippy");
    }
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("setup: adding Rust's {}", missing.join(", "));
    run_program(cmd!(shell, "rustup component add {missing...}"))
}
