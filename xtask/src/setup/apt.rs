use std::path::Path;

use xshell::{Cmd, Shell, cmd};

use crate::error::TaskError;
use crate::workspace::{run as run_program, succeeds};

/// Installs Debian packages, as root or through sudo, without starting a database server.
pub(super) fn install(shell: &Shell, packages: &[&str]) -> Result<(), TaskError> {
    let list = packages.join(" ");
    if !succeeds(cmd!(shell, "apt-get --version")) {
        return Err(TaskError::message(format!(
            "this machine has no apt-get: install what Debian calls {list} with its own package manager"
        )));
    }
    let rights = Rights::find(shell).ok_or_else(|| {
        TaskError::message(format!(
            "neither root nor sudo: have an administrator run `apt-get install {list}`"
        ))
    })?;
    eprintln!("setup: installing {list}");
    run_program(rights.command(shell, &["apt-get", "update"]))?;
    let _no_cluster = NoCluster::declare(shell, rights)?;
    let line = ["apt-get", "install", "-y", "--no-install-recommends"];
    run_program(rights.command(shell, &line).args(packages))
}

#[derive(Debug, Clone, Copy)]
enum Rights {
    Root,
    Sudo,
}

impl Rights {
    fn find(shell: &Shell) -> Option<Rights> {
        let user = cmd!(shell, "id -u").quiet().read().ok()?;
        if user.trim() == "0" {
            return Some(Rights::Root);
        }
        succeeds(cmd!(shell, "sudo --version")).then_some(Rights::Sudo)
    }

    /// `line` as root; `env` passes the variable through sudo.
    fn command<'a>(self, shell: &'a Shell, line: &[&str]) -> Cmd<'a> {
        let command = match self {
            Rights::Root => cmd!(shell, "env"),
            Rights::Sudo => cmd!(shell, "sudo env"),
        };
        command.arg("DEBIAN_FRONTEND=noninteractive").args(line)
    }
}

/// Keeps Debian's PostgreSQL package from making and starting a cluster of its own, as long as
/// this value lives: the tests make theirs.
struct NoCluster<'a> {
    shell: &'a Shell,
    rights: Rights,
}

impl<'a> NoCluster<'a> {
    fn declare(shell: &'a Shell, rights: Rights) -> Result<NoCluster<'a>, TaskError> {
        let folder = Path::new(FILE).parent().unwrap_or(Path::new("/"));
        let folder = folder.display().to_string();
        run_program(rights.command(shell, &["mkdir", "-p", &folder]))?;
        let guard = NoCluster { shell, rights };
        let write = rights.command(shell, &["tee", FILE]);
        write
            .stdin("create_main_cluster = false\n")
            .quiet()
            .ignore_stdout()
            .run()?;
        Ok(guard)
    }
}

impl Drop for NoCluster<'_> {
    fn drop(&mut self) {
        let removed = self.rights.command(self.shell, &["rm", "-f", FILE]);
        if let Err(error) = removed.quiet().run() {
            eprintln!("setup: {FILE} is left behind: {error}");
        }
    }
}

/// Read by Debian's `createcluster.conf`.
const FILE: &str = "/etc/postgresql-common/createcluster.d/driftline.conf";
