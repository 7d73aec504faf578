//! The conformance vectors of the sync protocol, run on the pure machine in WebAssembly.

use std::process::Command;

use cargo_metadata::MetadataCommand;
use xshell::cmd;

use super::programs::Program;
use crate::error::TaskError;
use crate::setup::rust::{self, WASM};
use crate::workspace::{Workspace, run as run_program};

/// The name of the program.
pub(super) const NAME: &str = "core/sync_vectors.wasm";
/// The end of the summary if the program could not be built.
pub(super) const NOT_RUN: &str =
    "; NOT RUN: core/sync_vectors.wasm, since Rust's target wasm32-unknown-unknown is missing";

/// Builds the program for WebAssembly; Node runs it. `None` if Rust's target is missing.
pub(super) fn program(workspace: &Workspace) -> Result<Option<Program>, TaskError> {
    if !rust::has_wasm(workspace) {
        return Ok(None);
    }
    run_program(cmd!(
        workspace.shell,
        "cargo build --locked --package driftline-core --features vectors --bin sync_vectors --target {WASM}"
    ))?;
    let metadata = MetadataCommand::new()
        .current_dir(&workspace.root)
        .no_deps()
        .exec()?;
    let built = metadata.target_directory.join(WASM);
    let mut command = Command::new("node");
    command
        .arg(workspace.root.join("crates/core/tests/sync_vectors.mjs"))
        .arg(built.join("debug/sync_vectors.wasm"));
    Ok(Some(Program {
        name: NAME.to_owned(),
        command,
    }))
}
