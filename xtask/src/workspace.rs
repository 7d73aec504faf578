use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use xshell::{Cmd, Shell};

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

    /// The text of a file, by its path from the root.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<String, TaskError> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(|error| TaskError::File { path, error })
    }

    /// Whether a file or folder exists, by its path from the root.
    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }
}

/// Shows a command, runs it with this terminal, and fails as it fails.
pub(crate) fn run(cmd: Cmd<'_>) -> Result<(), TaskError> {
    let shown = cmd.to_string();
    eprintln!("$ {shown}");
    match command(cmd).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(TaskError::Program {
            command: shown,
            status,
        }),
        Err(error) => Err(TaskError::NotStarted {
            command: shown,
            error,
        }),
    }
}

/// The command as a shell would start it, without the variables that cargo sets for this program:
/// build scripts watch some of them, so `cargo xtask` and `cargo` in turn would rebuild whatever
/// depends on those scripts.
pub(crate) fn command(cmd: Cmd<'_>) -> Command {
    let mut command = Command::from(cmd);
    for (name, _) in env::vars_os() {
        let is_own = |name: &str| OF_THIS_PROGRAM.iter().any(|own| name.starts_with(own));
        if name.to_str().is_some_and(is_own) {
            command.env_remove(name);
        }
    }
    command
}

const OF_THIS_PROGRAM: [&str; 4] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
];

/// Whether a command succeeds, without a word.
pub(crate) fn succeeds(cmd: Cmd<'_>) -> bool {
    let outcome = cmd.quiet().ignore_stdout().ignore_stderr().run();
    outcome.is_ok()
}
