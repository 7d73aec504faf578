use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, run as run_program, succeeds};

/// Adds rustfmt and clippy, which rustup's minimal profile lacks.
pub(super) fn install_components(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let is_missing = |(command, _): &(&str, _)| !succeeds(cmd!(shell, "cargo {command} --version"));
    let components = [("fmt", "rustfmt"), ("clippy", "clippy")].into_iter();
    let missing = components
        .filter(is_missing)
        .map(|(_, component)| component);
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("setup: adding Rust's {}", missing.join(", "));
    run_program(cmd!(shell, "rustup component add {missing...}"))
}
