//! The peer of libraries and of posts: PouchDB, which replicates from express-pouchdb, both on leveldb and each in a process
//! of Node.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use super::phase::Phases;
use crate::{failure::Failure, process::Process};

/// The folder of the packages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packages<'p>(pub(super) &'p Path);

/// A server with documents.
pub(super) struct PouchDb {
    packages: PathBuf,
    /// It ends with this value, before its folder.
    _server: Process,
    folder: TempDir,
    port: String,
    documents: usize,
    changes: usize,
}

impl Packages<'_> {
    /// False if they are not installed.
    pub(super) fn are_there(self) -> bool {
        let mut packages = ["pouchdb", "express-pouchdb", "express"].into_iter();
        let modules = self.0.join("node_modules");
        packages.all(|package| modules.join(package).is_dir())
    }

    /// Starts a server of documents, of which so many change in each round.
    pub(super) fn serve(
        self,
        documents: impl IntoIterator<Item = Value>,
        changes: usize,
    ) -> Result<PouchDb, Failure> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("server");
        fs::create_dir(&data)?;
        let lines = folder.path().join("documents");
        let mut file = BufWriter::new(File::create(&lines)?);
        let mut count = 0;
        for document in documents {
            writeln!(file, "{document}")?;
            count += 1;
        }
        file.flush()?;
        let mut command = node(self.0, "serve", &data);
        let mut server = Process::start(command.arg(&lines))?;
        let port = server.line()?;
        if port.is_empty() {
            return Err(Failure::new("express-pouchdb has not started"));
        }
        Ok(PouchDb {
            packages: self.0.to_owned(),
            _server: server,
            folder,
            port,
            documents: count,
            changes,
        })
    }
}

impl PouchDb {
    /// Replicates to new databases.
    pub(super) fn round(&self) -> Result<Phases, Failure> {
        let data = self.folder.path().join("client");
        fs::create_dir(&data)?;
        let mut command = node(&self.packages, "pull", &data);
        let mut client = Process::start(command.args([&self.port, &self.changes.to_string()]))?;
        let line = client.line()?;
        drop(client);
        fs::remove_dir_all(&data)?;
        let phases: Phases = serde_json::from_str(&line)?;
        phases.checked(self.documents, self.changes)
    }
}

fn node(packages: &Path, role: &str, data: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(SCRIPT).arg(role).arg(data);
    command.current_dir(packages).stdin(Stdio::piped());
    command
}

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sync/pouchdb.mjs");
