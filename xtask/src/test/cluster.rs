//! The PostgreSQL cluster that the test programs of a run share.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::TaskError;

/// Stopped when dropped.
pub(crate) struct Cluster {
    keeper: Child,
    url: String,
}

impl Cluster {
    /// Starts a cluster by running that program, its data below `scratch`. None where a cluster is
    /// named already.
    pub(crate) fn start(
        program: &Path,
        scratch: Option<(&str, &Path)>,
    ) -> Result<Option<Cluster>, TaskError> {
        if env::var_os(VARIABLE).is_some() {
            return Ok(None);
        }
        let started = Command::new(program)
            .envs(scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let failed = |error| TaskError::Program(program.display().to_string(), error);
        let mut keeper = started.map_err(failed)?;
        let mut url = String::new();
        if let Some(output) = keeper.stdout.take() {
            // Without a line it has failed, and has said why.
            let _ = BufReader::new(output).read_line(&mut url);
        }
        let url = url.trim().to_owned();
        let cluster = Cluster { keeper, url };
        match cluster.url.is_empty() {
            false => Ok(Some(cluster)),
            true => Err(TaskError::message("no PostgreSQL cluster could be started")),
        }
    }

    /// The URL of its `postgres` database.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What a program is to find in its environment.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.url)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Names the cluster that tests use instead of one of their own.
pub(crate) const VARIABLE: &str = "DRIFTLINE_TEST_POSTGRES_URL";
