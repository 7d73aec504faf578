//! How a command ends when it does not end well.

use std::fmt::Display;

use driftline_mirror::SessionError;
use driftline_replica::ReplicaError;
use driftline_runtime::CommandError;
use driftline_store::StoreError;

/// Why a command was not carried out. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line or the configuration is wrong: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// What was asked for failed: exit status 1.
    #[error("{0}")]
    Failed(String),
    /// What was asked for was done in part: exit status 3.
    #[error("{0}")]
    Unsettled(String),
    /// There is no store: exit status 10.
    #[error("{0}")]
    NoStore(String),
    /// Another process has what is needed: exit status 11.
    #[error("{0}")]
    Locked(String),
    /// The database refused the log-in, or the system access to its file: exit status 12.
    #[error("{0}")]
    Denied(String),
    /// A signal ended it before it was done: exit status 130.
    #[error("{0}")]
    Interrupted(String),
    /// The output was closed: exit status 0, in silence.
    #[error("the output was closed")]
    BrokenPipe,
}

impl CliError {
    /// A wrong command line or configuration.
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// A failure.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// The process's exit status.
    pub const fn status(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unsettled(_) => 3,
            Self::NoStore(_) => 10,
            Self::Locked(_) => 11,
            Self::Denied(_) => 12,
            Self::Interrupted(_) => INTERRUPTED,
        }
    }

    /// Another process has what is needed.
    pub fn locked(message: impl Display) -> Self {
        Self::Locked(message.to_string())
    }

    /// Whether the same may succeed later, with nothing else done.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Locked(_) | Self::Denied(_))
    }
}

impl From<CommandError> for CliError {
    fn from(error: CommandError) -> Self {
        match (error.usage, error.denied) {
            (true, _) => Self::Usage(error.message),
            (false, true) => Self::Denied(error.message),
            (false, false) => Self::Failed(error.message),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let text = format!("the store: {error}");
        match error.is_denied() {
            _ if error.is_interrupted() => Self::Interrupted("interrupted".into()),
            true => Self::Denied(text),
            false => Self::Failed(text),
        }
    }
}

impl From<ReplicaError> for CliError {
    fn from(error: ReplicaError) -> Self {
        let text = error.to_string();
        match error {
            ReplicaError::NoReplica(_) => Self::NoStore(text),
            ReplicaError::Locked(_) => Self::Locked(text),
            ReplicaError::Url
            | ReplicaError::Readable(_)
            | ReplicaError::Token(_)
            | ReplicaError::NoPost(_)
            | ReplicaError::Key(_)
            | ReplicaError::Value(_)
            | ReplicaError::ReadOnly(_)
            | ReplicaError::NoConflict(_)
            | ReplicaError::OtherServer { .. }
            | ReplicaError::OtherAccount { .. }
            | ReplicaError::NoSource { .. }
            | ReplicaError::NotSubscribed { .. }
            | ReplicaError::Query(_)
            | ReplicaError::ManyRemoved { .. } => Self::Usage(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Client(error) => Self::Usage(error.to_string()),
            SessionError::Store(StoreError::LeaseLost) => Self::Locked(
                "another process took the source over; only one may read it at a time".into(),
            ),
            SessionError::Store(error) => error.into(),
        }
    }
}

/// The exit statuses, as `--help` and `docs/operating.md` list them.
pub const EXIT_STATUSES: &str = "\
Exit statuses:
    0  done
    1  failed
    2  wrong usage or configuration
    3  partly done: something is unsettled or could not be fetched
   10  there is no store
   11  another process has the lock
   12  the database refused the log-in, or the system access to its file
  130  interrupted";

/// As shells report a process that SIGINT ended.
pub const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exit_statuses_is_the_documented_one() {
        let docs = include_str!("../../../docs/operating.md");
        for line in EXIT_STATUSES.lines().skip(1) {
            let (status, meaning) = line.trim().split_once("  ").unwrap();
            let row = format!("| {status} | {meaning} |");
            assert!(docs.contains(&row), "docs/operating.md has no row {row}");
        }
    }

    #[test]
    fn each_error_has_a_status_of_the_table() {
        let message = String::new;
        for error in [
            CliError::Usage(message()),
            CliError::Failed(message()),
            CliError::Unsettled(message()),
            CliError::NoStore(message()),
            CliError::Locked(message()),
            CliError::Denied(message()),
            CliError::Interrupted(message()),
        ] {
            let status = error.status().to_string();
            let mut listed = EXIT_STATUSES.lines().map(str::trim_start);
            assert!(
                listed.any(|line| line.split(' ').next() == Some(&status)),
                "{status}"
            );
        }
    }
}
