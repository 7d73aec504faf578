//! Where tests keep databases while they run.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::Workspace;

/// A folder in memory for temporary files, if there is room: on a disk the tests wait for each
/// commit most of their time. Removed at the end.
pub(super) struct Scratch(Option<PathBuf>);

impl Scratch {
    /// None where somebody has said where temporary files are to be.
    pub(super) fn make(workspace: &Workspace) -> Result<Scratch, TaskError> {
        if env::var_os(VARIABLE).is_some() || !has_room(workspace) {
            return Ok(Scratch(None));
        }
        let path = Path::new(MEMORY).join(format!("driftline-test-{}", process::id()));
        Ok(Scratch(Some(workspace.shell.create_dir(path)?)))
    }

    /// What a program is to find in its environment.
    pub(super) fn variable(&self) -> Option<(&'static str, &Path)> {
        Some((VARIABLE, self.0.as_deref()?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What a test that failed left open goes with its process.
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn has_room(workspace: &Workspace) -> bool {
    let asked = cmd!(workspace.shell, "df --output=fstype,avail -k {MEMORY}");
    let told = asked.quiet().ignore_stderr().read();
    told.is_ok_and(|told| room_kib(&told).is_some_and(|kib| kib >= MIN_KIB))
}

/// KiB that are free, if it is memory.
fn room_kib(told: &str) -> Option<u64> {
    let (kind, free) = told.lines().nth(1)?.trim().split_once(' ')?;
    (kind == "tmpfs").then(|| free.trim().parse().ok())?
}

const VARIABLE: &str = "TMPDIR";
const MEMORY: &str = "/dev/shm";
const MIN_KIB: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::room_kib;

    #[test]
    fn only_memory_has_room() {
        assert_eq!(
            room_kib("Type     Avail\ntmpfs 12138124\n"),
            Some(12_138_124)
        );
        assert_eq!(room_kib("Type    Avail\next4  9138124\n"), None);
        assert_eq!(room_kib("df: nothing\n"), None);
    }
}
