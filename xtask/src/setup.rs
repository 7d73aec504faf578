//! What a fresh machine needs beyond Rust, Node and a package manager.

mod apt;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod rust;

use std::path::PathBuf;
use std::{env, fs};

use crate::error::TaskError;
use crate::workspace::Workspace;

/// A server or tool that Debian packages.
pub(crate) struct Server {
    package: &'static str,
    programs: &'static [&'static str],
}

const fn server(package: &'static str, programs: &'static [&'static str]) -> Server {
    Server { package, programs }
}

/// What the tests keep data in.
const POSTGRES: Server = server("postgresql", &["initdb", "postgres"]);
/// What the tests put before it.
const PGBOUNCER: Server = server("pgbouncer", &["pgbouncer"]);
/// Whose library lets the tests set the clock of a program.
const FAKETIME: Server = server("faketime", &["faketime"]);
/// What checks alerts, dashboard and metrics; the tests start no server of it.
const PROMETHEUS: Server = server("prometheus", &["promtool"]);
/// What nothing but a benchmark needs.
pub(crate) const REDIS: Server = server("redis-server", &["redis-server"]);
/// What nothing but a benchmark needs.
pub(crate) const SQLITE3: Server = server("sqlite3", &["sqlite3"]);
/// Needed by a benchmark only.
pub(crate) const DOVECOT: Server = server("dovecot-imapd", &["dovecot"]);
/// Needed by a benchmark only.
pub(crate) const MBSYNC: Server = server("isync", &["mbsync"]);

/// Installs whatever is missing; quick and quiet when nothing is.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    rust::install_components(workspace)?;
    rust::install_wasm(workspace);
    let servers = [POSTGRES, PGBOUNCER, PROMETHEUS, FAKETIME];
    let missing = servers.iter().filter(|server| !server.is_installed());
    let mut missing: Vec<&str> = missing.map(|server| server.package).collect();
    if python::base(&workspace.shell).is_none() {
        missing.extend(python::PACKAGES);
    }
    if !missing.is_empty() {
        apt::install(&workspace.shell, &missing)?;
    }
    servers.iter().try_for_each(Server::check)?;
    python::prepare(workspace)?;
    node::prepare(workspace)
}

impl Server {
    /// Installs it if it is missing.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<(), TaskError> {
        if !self.is_installed() {
            apt::install(&workspace.shell, &[self.package])?;
        }
        self.check()
    }

    fn check(&self) -> Result<(), TaskError> {
        match self.is_installed() {
            true => Ok(()),
            false => Err(TaskError::message(format!(
                "the programs of {} are still missing: put the folder with {} on PATH",
                self.package,
                self.programs.join(" and ")
            ))),
        }
    }

    /// Whether its programs are on PATH, or where Debian puts PostgreSQL's and those of services.
    fn is_installed(&self) -> bool {
        let path = env::var_os("PATH").unwrap_or_default();
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let versions = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
        env::split_paths(&path)
            .chain(versions)
            .chain([PathBuf::from("/usr/sbin")])
            .any(|folder: PathBuf| {
                let mut programs = self.programs.iter();
                programs.all(|program| folder.join(program).is_file())
            })
    }
}
