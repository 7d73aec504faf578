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
    let is_ours = |of: &&Declaration| of.path.contains("driftline") || !Path::new(of.path).exists();
    let declared: Vec<_> = DECLARATIONS.iter().filter(is_ours).collect();
    let line = ["apt-get", "install", "-y", "--no-install-recommends"];
    let mut written = declared.iter().map(|declaration| root.write(declaration));
    let installed = match written.find(Result::is_err) {
        Some(failed) => failed,
        None => run_program(root.command(&line).args(packages)),
    };
    for Declaration { path, .. } in declared {
        if let Err(error) = root.command(&["rm", "-f", path]).quiet().run() {
            eprintln!("setup: {path} is left behind: {error}");
        }
    }
    installed
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

    fn write(&self, declaration: &Declaration) -> Result<(), TaskError> {
        let &Declaration { path, mode, text } = declaration;
        let write = self.command(&["install", "-D", "-m", mode, "/dev/stdin", path]);
        Ok(write.stdin(text).quiet().run()?)
    }
}

/// A file that packages read as they are installed, and that is removed then.
struct Declaration {
    path: &'static str,
    mode: &'static str,
    text: &'static str,
}

const DECLARATIONS: [Declaration; 2] = [
    // Keeps Debian's PostgreSQL package from making and starting a cluster of its own: the tests
    // make theirs. Read by its `createcluster.conf`.
    Declaration {
        path: "/etc/postgresql-common/createcluster.d/driftline.conf",
        mode: "644",
        text: "create_main_cluster = false\n",
    },
    // Keeps packages from starting services. Run by Debian's `invoke-rc.d`, which takes 101 as a no.
    Declaration {
        path: "/usr/sbin/policy-rc.d",
        mode: "755",
        text: "#!/bin/sh\nexit 101\n",
    },
];
