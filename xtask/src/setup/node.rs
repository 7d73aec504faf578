use std::path::PathBuf;

use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, run as run_program, succeeds};

/// Tells the tests which folder holds the real clients in JavaScript.
pub(crate) const VARIABLE: &str = "DRIFTLINE_NODE_MODULES";

/// The folder of the packages.
pub(crate) fn modules(workspace: &Workspace) -> PathBuf {
    workspace.root.join(FOLDER).join("node_modules")
}

/// Installs the packages, unless they are there already.
pub(super) fn prepare(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let stamp = workspace.root.join(FOLDER).join("driftline-packages");
    let wanted = PACKAGES.join(" ");
    if shell.read_file(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    if !succeeds(cmd!(shell, "npm --version")) {
        return Err(TaskError::message(
            "npm is missing: install Node with it (Debian: nodejs and npm)",
        ));
    }
    eprintln!("setup: {wanted} in {FOLDER}");
    shell.remove_path(FOLDER)?;
    shell.create_dir(FOLDER)?;
    // Without a file of its own npm would take the nearest folder above that has one.
    shell.write_file(workspace.root.join(FOLDER).join("package.json"), "{}\n")?;
    run_program(cmd!(
        shell,
        "npm install --prefix {FOLDER} --ignore-scripts --no-audit --no-fund --loglevel error {PACKAGES...}"
    ))?;
    Ok(shell.write_file(stamp, wanted)?)
}

const FOLDER: &str = "target/node";
/// The newest of each: masto.js, which reads Driftline, and the WebSockets that it takes where Node
/// has none of its own, before version 22.
const PACKAGES: [&str; 2] = ["masto@8.0.0", "ws@8.23.0"];
