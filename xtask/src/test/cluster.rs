//! The PostgreSQL cluster that the test programs of a run share.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fmt, process};

use crate::error::TaskError;
use crate::workspace::{Workspace, start};

/// The URL of a server that somebody names, which may hold a password and so is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl(String);

impl ServerUrl {
    /// The one that is given, else that of the environment.
    pub(crate) fn or_of_environment(given: Option<&ServerUrl>) -> Option<ServerUrl> {
        let of_environment = || env::var(VARIABLE).ok().map(ServerUrl);
        given.cloned().or_else(of_environment)
    }
}

impl From<String> for ServerUrl {
    fn from(text: String) -> ServerUrl {
        ServerUrl(text)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerUrl(…)")
    }
}

/// A cluster of the run's own, stopped when dropped; or a server that was named, on which is dropped
/// what the run has made.
pub(crate) struct Cluster {
    keeper: Child,
    url: String,
    run: Option<String>,
}

impl Cluster {
    /// Starts a cluster by running that program, its data below `scratch`.
    pub(crate) fn start(
        program: &Path,
        scratch: Option<(&str, &Path)>,
    ) -> Result<Cluster, TaskError> {
        let mut command = Command::new(program);
        command.envs(scratch).env_remove(VARIABLE);
        let (keeper, url) = start(command.stdin(Stdio::piped()))?;
        let cluster = Cluster {
            keeper,
            url,
            run: None,
        };
        match cluster.url.is_empty() {
            false => Ok(cluster),
            true => Err(TaskError::message("no PostgreSQL cluster could be started")),
        }
    }

    /// Has that program check that the tests can use the server.
    pub(crate) fn named(program: &Path, ServerUrl(url): ServerUrl) -> Result<Cluster, TaskError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.unwrap_or_default().as_millis();
        let run = format!("{}_{now_ms}", process::id());
        let mut command = Command::new(program);
        // An interrupt at the terminal ends the tests; what they have made is still dropped.
        command
            .env(VARIABLE, &url)
            .env(RUN_VARIABLE, &run)
            .process_group(0);
        let (keeper, ready) = start(command.stdin(Stdio::piped()))?;
        let cluster = Cluster {
            keeper,
            url,
            run: Some(run),
        };
        match ready.is_empty() {
            false => Ok(cluster),
            true => Err(TaskError::message(
                "the tests cannot use the PostgreSQL server that is named",
            )),
        }
    }

    /// The URL of its `postgres` database, or of the one that was named.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What a program is to find in its environment.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let run = self.run.as_deref().map(|run| (RUN_VARIABLE, run));
        [(VARIABLE, &*self.url)].into_iter().chain(run)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Builds the program that starts a cluster, and checks one that is named.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let folder = workspace.build(&["--example", "cluster"])?;
    Ok(folder.join("examples/cluster"))
}

/// Names the server that tests use instead of a cluster of their own.
pub(crate) const VARIABLE: &str = "DRIFTLINE_TEST_POSTGRES_URL";
/// Names the run, in the names of all that its tests make on the server.
const RUN_VARIABLE: &str = "DRIFTLINE_TEST_RUN";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_never_shown() {
        let url = ServerUrl::from("postgres://me:hunter2@localhost/d".to_owned());
        assert!(!format!("{url:?}").contains("hunter2"));
    }

    #[test]
    fn the_option_wins() {
        let given = ServerUrl("postgres://h/d".into());
        assert_eq!(ServerUrl::or_of_environment(Some(&given)), Some(given));
    }
}
