use std::path::Path;

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

/// Adds Rust's target of WebAssembly. A machine that cannot get it runs everything else: its tests say what they leave out.
pub(super) fn install_wasm(workspace: &Workspace) {
    if has_wasm(workspace) {
        return;
    }
    eprintln!("setup: adding Rust's target {WASM}");
    let added = run_program(cmd!(workspace.shell, "rustup target add {WASM}"));
    if let Err(error) = added {
        eprintln!("setup: Rust's target {WASM} is MISSING: {error}");
    }
}

/// True if Rust builds for WebAssembly.
pub(crate) fn has_wasm(workspace: &Workspace) -> bool {
    let folder = cmd!(
        workspace.shell,
        "rustc --print target-libdir --target {WASM}"
    );
    let folder = folder.quiet().ignore_stderr().read();
    folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// The target.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
