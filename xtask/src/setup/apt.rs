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
    let root = Root::find(shell).ok_or_else(|| {
        TaskError::message(format!(
            "neither root nor sudo: have an administrator run `apt-get install {list}`"
        ))
    })?;
    eprintln!("setup: installing {list}");
    run_program(root.command(&["apt-get", "update"]))?;
    let _no_cluster = Declared::write(&root, &NO_CLUSTER)?;
    let _no_start = match Path::new(NO_START.path).exists() {
        true => None,
        false => Some(Declared::write(&root, &NO_START)?),
    };
    let line = ["apt-get", "install", "-y", "--no-install-recommends"];
    run_program(root.command(&line).args(packages))
}

/// Who may install packages.
struct Root<'a> {
    shell: &'a Shell,
    is_user: bool,
}

impl<'a> Root<'a> {
    fn find(shell: &'a Shell) -> Option<Root<'a>> {
        let user = cmd!(shell, "id -u").quiet().read().ok()?;
        let is_user = user.trim() == "0";
        (is_user || succeeds(cmd!(shell, "sudo --version"))).then_some(Root { shell, is_user })
    }

    /// `line` as root; `env` passes the variable through sudo.
    fn command(&self, line: &[&str]) -> Cmd<'a> {
        let command = match self.is_user {
            true => self.shell.cmd("env"),
            false => self.shell.cmd("sudo").arg("env"),
        };
        command.arg("DEBIAN_FRONTEND=noninteractive").args(line)
    }
}

/// A file that packages read as they are installed; it is removed with this value.
struct Declared<'a> {
    root: &'a Root<'a>,
    path: &'static str,
}

/// What such a file says.
struct Declaration {
    path: &'static str,
    mode: &'static str,
    text: &'static str,
}

impl<'a> Declared<'a> {
    fn write(root: &'a Root<'a>, declaration: &Declaration) -> Result<Declared<'a>, TaskError> {
        let &Declaration { path, mode, text } = declaration;
        let guard = Declared { root, path };
        let write = root.command(&["install", "-D", "-m", mode, "/dev/stdin", path]);
        write.stdin(text).quiet().run()?;
        Ok(guard)
    }
}

impl Drop for Declared<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.root.command(&["rm", "-f", self.path]).quiet().run() {
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
