use std::fs;

use cargo_metadata::MetadataCommand;
use clap::Args;
use xshell::cmd;

use crate::error::TaskError;
use crate::setup;
use crate::workspace::{Workspace, run as run_program};

/// What `cargo xtask bench` takes.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Which benchmark; `help` lists them
    #[arg(default_value = "all")]
    name: String,
    /// What the benchmark takes itself, after `--`: `--quick`, `--rounds 3`
    #[arg(last = true)]
    args: Vec<String>,
}

/// Sets the machine up and runs a benchmark of the workspace in `bench/`, which starts its own
/// databases as the tests do.
pub(crate) fn run(workspace: &Workspace, args: &BenchArgs) -> Result<(), TaskError> {
    if !workspace.shell.path_exists(MANIFEST) {
        return Err(TaskError::message(format!("{MANIFEST} does not exist")));
    }
    setup::run(workspace)?;
    let name = args.name.as_str();
    let shell = &workspace.shell;
    let mut options = args.args.clone();
    if matches!(name, "id" | "all") {
        setup::REDIS.install(workspace)?;
    }
    if matches!(name, "export" | "all") {
        setup::SQLITE3.install(workspace)?;
    }
    if name == "sync" {
        let folder = install_sync_peers(workspace);
        options.extend(["--pouchdb".to_owned(), folder]);
    }
    if matches!(name, "id" | "tail" | "export" | "track" | "sync" | "all") {
        let driftline = build(workspace)?;
        options.extend(["--driftline".to_owned(), driftline]);
    }
    run_program(cmd!(
        shell,
        "cargo build --release --manifest-path {MANIFEST}"
    ))?;
    let load = print_load("before");
    let outcome = run_program(cmd!(
        shell,
        "cargo run --release --manifest-path {MANIFEST} -- {name} {options...}"
    ));
    print_load("after");
    if load.is_some_and(|load| load > QUIET_LOAD) {
        println!(
            "the machine was busy before the start: expect slower figures than on a quiet one"
        );
    }
    outcome
}

/// Installs the peers of `sync`, and returns the folder of PouchDB. The benchmark says which are missing.
fn install_sync_peers(workspace: &Workspace) -> String {
    for installed in [
        setup::DOVECOT.install(workspace),
        setup::MBSYNC.install(workspace),
        setup::node::install_pouchdb(workspace),
    ] {
        if let Err(error) = installed {
            eprintln!("setup: a peer cannot be installed: {error}");
        }
    }
    let folder = setup::node::pouchdb_folder(workspace);
    folder.to_string_lossy().into_owned()
}

/// Builds `driftline` and returns its path.
fn build(workspace: &Workspace) -> Result<String, TaskError> {
    let shell = &workspace.shell;
    run_program(cmd!(
        shell,
        "cargo build --profile dist --locked --package driftline"
    ))?;
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.root.join("Cargo.toml"))
        .no_deps()
        .exec()?;
    let binary = metadata.target_directory.join("dist").join("driftline");
    Ok(binary.into_string())
}

/// Prints the machine's load, and returns that of the last minute.
fn print_load(when: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    println!("load {when}: {}", text.trim());
    text.split_whitespace().next()?.parse().ok()
}

const MANIFEST: &str = "bench/Cargo.toml";
const QUIET_LOAD: f64 = 0.5;
