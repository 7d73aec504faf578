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
    let _no_cluster = Declared::write(shell, rights, &NO_CLUSTER)?;
    let _no_start = match Path::new(NO_START.path).exists() {
        true => None,
        false => Some(Declared::write(shell, rights, &NO_START)?),
    };
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

/// A file that packages read as they are installed; it is removed with this value.
struct Declared<'a> {
    shell: &'a Shell,
    rights: Rights,
    path: &'static str,
}

/// What such a file says.
struct Declaration {
    path: &'static str,
    mode: &'static str,
    text: &'static str,
}

impl<'a> Declared<'a> {
    fn write(
        shell: &'a Shell,
        rights: Rights,
        declaration: &Declaration,
    ) -> Result<Declared<'a>, TaskError> {
        let &Declaration { path, mode, text } = declaration;
        let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
        let folder = folder.display().to_string();
        run_program(rights.command(shell, &["mkdir", "-p", &folder]))?;
        let guard = Declared {
            shell,
            rights,
            path,
        };
        let write = rights.command(shell, &["tee", path]);
        write.stdin(text).quiet().ignore_stdout().run()?;
        run_program(rights.command(shell, &["chmod", mode, path]))?;
        Ok(guard)
    }
}

impl Drop for Declared<'_> {
    fn drop(&mut self) {
        let removed = self.rights.command(self.shell, &["rm", "-f", self.path]);
        if let Err(error) = removed.quiet().run() {
            eprintln!("setup: {} is left behind: {error}", self.path);
        }
    }
}

/// Keeps Debian's PostgreSQL package from making and starting a cluster of its own: the tests
/// make theirs. Read by its `createcluster.conf`.
const NO_CLUSTER: Declaration = Declaration {
    path: "/etc/postgresql-common/createcluster.d/driftline.conf",
    mode: "644",
    text: "create_main_cluster = false\n",
};
/// Keeps packages from starting services. Run by Debian's `invoke-rc.d`, which takes 101 as a no.
const NO_START: Declaration = Declaration {
    path: "/usr/sbin/policy-rc.d",
    mode: "755",
    text: "#!/bin/sh\nexit 101\n",
};
