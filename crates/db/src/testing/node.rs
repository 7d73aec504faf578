use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use super::cluster::{Account, ClusterError, POLL, START_TIMEOUT, find_programs, output};
use super::nodes;
use crate::error::DbError;

/// A server of a distributed PostgreSQL on this machine, for tests that kill it. Its configuration
/// file contains all settings with which it is started again.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    folder: PathBuf,
}

impl Node {
    /// The nodes of the cluster whose coordinator has `url`, the coordinator first.
    ///
    /// # Errors
    /// [`DbError`] if a node does not report its data folder.
    pub fn all(url: &str) -> Result<Vec<Node>, DbError> {
        let of_nodes = nodes::addresses(url)?.into_iter().map(|address| {
            let folder = nodes::data_folder(&address.url)?;
            Ok(Node {
                name: address.name,
                folder: folder.into(),
            })
        });
        of_nodes.collect()
    }

    /// Its host and port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends the server and all of its sessions by SIGKILL.
    ///
    /// # Errors
    /// [`ClusterError`] if the server does not run, or may not be killed.
    pub fn kill(&self) -> Result<(), ClusterError> {
        let pid = fs::read_to_string(self.folder.join("postmaster.pid"))?;
        let pid = pid.lines().next().unwrap_or_default().to_owned();
        // A server that is killed first starts no further session.
        let sessions = output(Command::new("pgrep").args(["-P", &pid]), "pgrep")?;
        output(Command::new("kill").args(["-KILL", &pid]), "kill")?;
        for session in sessions.split_whitespace() {
            // The session may have ended by itself.
            let _ = output(Command::new("kill").args(["-KILL", session]), "kill");
        }
        // A server does not start while its folder names a process that exists.
        let deadline = Instant::now() + START_TIMEOUT;
        while Path::new("/proc").join(&pid).exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Errors
    /// [`ClusterError`] if it does not start within a minute.
    pub fn start(&self) -> Result<(), ClusterError> {
        let programs = find_programs().ok_or(ClusterError::NotInstalled)?;
        let line = owner_of(&self.folder)?.command(&programs.join("pg_ctl"));
        let (program, rest) = line.split_first().ok_or(ClusterError::NotInstalled)?;
        let mut command = Command::new(program);
        command.args(rest).args(["start", "--wait", "--timeout=60"]);
        command.arg("--log").arg(self.folder.join("log"));
        command
            .arg("--pgdata")
            .arg(&self.folder)
            .current_dir("/")
            // Root's home is closed to it, and servers look for certificates there.
            .env("HOME", &self.folder)
            // A pipe would stay open as long as the server runs.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let failed = |output| ClusterError::Failed {
            program: "pg_ctl".into(),
            output,
        };
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("{status}; its log is in the data folder"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn owner_of(folder: &Path) -> Result<Account, ClusterError> {
    let is_own = fs::metadata(folder)?.uid() == fs::metadata("/proc/self")?.uid();
    match is_own {
        true => Ok(Account::Own),
        false => Ok(Account::Other("postgres")),
    }
}
