use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cargo_metadata::MetadataCommand;
use xshell::{Cmd, Shell, cmd};

use crate::error::TaskError;

/// The workspace's folder, and a shell that stands in it.
pub(crate) struct Workspace {
    /// Runs commands in the root.
    pub(crate) shell: Shell,
    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
}

impl Workspace {
    /// The workspace that this program belongs to.
    pub(crate) fn open() -> Result<Workspace, TaskError> {
        let own = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own.parent().unwrap_or(&own).to_path_buf();
        let shell = Shell::new()?;
        shell.change_dir(&root);
        Ok(Workspace { shell, root })
    }

    /// Builds a target and gives the folder of the workspace's binaries.
    pub(crate) fn build(&self, target: &[&str]) -> Result<PathBuf, TaskError> {
        let shell = &self.shell;
        // Of the whole workspace, so that it shares what the tests are made of.
        run(cmd!(shell, "cargo build --locked --workspace {target...}"))?;
        let metadata = MetadataCommand::new()
            .current_dir(&self.root)
            .no_deps()
            .exec()?;
        Ok(metadata.target_directory.join("debug").into_std_path_buf())
    }
}

/// Shows a command, runs it with this terminal, and fails as it fails.
pub(crate) fn run(cmd: Cmd<'_>) -> Result<(), TaskError> {
    Ok(without_own_variables(cmd).run()?)
}

/// The command as a shell would start it, without the variables that cargo sets for this program:
/// build scripts watch some of them, so `cargo xtask` and `cargo` in turn would rebuild whatever
/// depends on those scripts.
pub(crate) fn without_own_variables(mut cmd: Cmd<'_>) -> Cmd<'_> {
    for (name, _) in env::vars_os() {
        let is_own = |name: &str| OF_THIS_PROGRAM.iter().any(|own| name.starts_with(own));
        if name.to_str().is_some_and(is_own) {
            cmd = cmd.env_remove(name);
        }
    }
    cmd
}

const OF_THIS_PROGRAM: [&str; 4] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
];

/// Starts a program and waits for its first line, which is empty if it has failed, and has said why.
pub(crate) fn start(command: &mut Command) -> Result<(Child, String), TaskError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| TaskError::Program(program, error))?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut line);
    }
    Ok((child, line.trim().to_owned()))
}

/// Whether a command succeeds, without a word.
pub(crate) fn succeeds(cmd: Cmd<'_>) -> bool {
    let outcome = cmd.quiet().ignore_stdout().ignore_stderr().run();
    outcome.is_ok()
}
