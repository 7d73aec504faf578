//! The programs that cargo makes of the workspace's tests.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cargo_metadata::Message;
use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, without_own_variables};

/// A program whose success is that of its tests.
pub(crate) struct Program {
    /// The same in each run.
    pub(crate) name: String,
    pub(crate) command: Command,
}

impl Program {
    /// The tests of the documentation, which cargo builds and runs itself.
    pub(super) fn documentation(workspace: &Workspace, filter: Option<&str>) -> Program {
        let shell = &workspace.shell;
        let documents = "cargo test --workspace --locked --no-fail-fast --doc";
        let words = documents.split(' ').skip(1).chain(filter);
        Program {
            name: "documentation".to_owned(),
            command: without_own_variables(shell.cmd("cargo").args(words)).into(),
        }
    }

    /// Has it write how long each test takes. Rust's test harness calls that unstable, and asks for
    /// the variable only as it runs: nothing is built otherwise for it.
    pub(super) fn time_tests(&mut self) {
        let flags = ["-Zunstable-options", "--report-time"];
        self.command.args(flags).env("RUSTC_BOOTSTRAP", "1");
    }
}

/// What cargo has built.
pub(super) struct Built {
    /// All test programs, each to be run as `cargo test` runs it.
    pub(super) programs: Vec<Program>,
    /// The program that starts a PostgreSQL cluster.
    pub(super) cluster: PathBuf,
}

/// Builds all that a run of the tests needs.
pub(super) fn build(workspace: &Workspace, filter: Option<&str>) -> Result<Built, TaskError> {
    let build = cmd!(
        workspace.shell,
        "cargo test --workspace --locked --no-run --message-format=json-render-diagnostics"
    );
    let shown = build.to_string();
    eprintln!("$ {shown}");
    let failed = |error| TaskError::Program(shown.clone(), error);
    let mut cargo = Command::from(without_own_variables(build));
    let mut cargo = cargo.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut programs = Vec::new();
    let mut cluster = None;
    if let Some(messages) = cargo.stdout.take() {
        for message in Message::parse_stream(BufReader::new(messages)) {
            let Message::CompilerArtifact(made) = message.map_err(failed)? else {
                continue;
            };
            let Some(executable) = made.executable else {
                continue;
            };
            if made.target.is_example() && made.target.name == CLUSTER {
                cluster = Some(executable.into_std_path_buf());
            } else if made.profile.test
                && let Some(folder) = made.manifest_path.parent()
            {
                let mut command = Command::new(executable);
                command
                    .args(filter)
                    .current_dir(folder)
                    .env("CARGO_MANIFEST_DIR", folder)
                    .stdin(Stdio::null());
                let package = folder.file_name().unwrap_or_default();
                let name = format!("{package}/{}", made.target.name);
                programs.push(Program { name, command });
            }
        }
    }
    if !cargo.wait().map_err(failed)?.success() {
        return Err(TaskError::message(format!("`{shown}` failed")));
    }
    let missing = || TaskError::message(format!("driftline-db has no example `{CLUSTER}`"));
    Ok(Built {
        programs,
        cluster: cluster.ok_or_else(missing)?,
    })
}

const CLUSTER: &str = "cluster";
