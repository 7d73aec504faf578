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
    install(workspace, FOLDER, &PACKAGES)
}

/// The folder of PouchDB, which only a benchmark needs.
pub(crate) fn pouchdb_folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join(POUCHDB_FOLDER)
}

/// Installs PouchDB and its server, unless they are there already.
pub(crate) fn install_pouchdb(workspace: &Workspace) -> Result<(), TaskError> {
    install(workspace, POUCHDB_FOLDER, &POUCHDB_PACKAGES)
}

fn install(workspace: &Workspace, folder: &str, packages: &[&str]) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let stamp = workspace.root.join(folder).join("driftline-packages");
    let wanted = packages.join(" ");
    if shell.read_file(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    if !succeeds(cmd!(shell, "npm --version")) {
        return Err(TaskError::message(
            "npm is missing: install Node with it (Debian: nodejs and npm)",
        ));
    }
    eprintln!("setup: {wanted} in {folder}");
    shell.remove_path(folder)?;
    shell.create_dir(folder)?;
    // Without a file of its own npm would take the nearest folder above that has one.
    shell.write_file(workspace.root.join(folder).join("package.json"), "{}\n")?;
    run_program(cmd!(
        shell,
        "npm install --prefix {folder} --ignore-scripts --no-audit --no-fund --loglevel error {packages...}"
    ))?;
    Ok(shell.write_file(stamp, wanted)?)
}

const FOLDER: &str = "target/node";
/// The newest of each: masto.js, which reads Driftline, and the WebSockets that it takes where Node
/// has none of its own, before version 22.
const PACKAGES: [&str; 2] = ["masto@8.0.0", "ws@8.23.0"];

const POUCHDB_FOLDER: &str = "target/pouchdb";
/// PouchDB, its server, and the framework that the server is a part of.
const POUCHDB_PACKAGES: [&str; 3] = ["pouchdb@9.0.0", "express-pouchdb@4.2.0", "express@4.22.3"];
