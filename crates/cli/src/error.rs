//! How a command ends when it does not end well.

use std::fmt::Display;

use driftline_mirror::SessionError;
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
        }
    }
}

impl From<CommandError> for CliError {
    fn from(error: CommandError) -> Self {
        match error.usage {
            true => Self::Usage(error.message),
            false => Self::Failed(error.message),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Failed(format!("the store: {error}"))
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Client(error) => Self::Usage(error.to_string()),
            SessionError::Store(StoreError::LeaseLost) => Self::Failed(
                "another process took the source over; only one may read it at a time".into(),
            ),
            SessionError::Store(error) => error.into(),
        }
    }
}
