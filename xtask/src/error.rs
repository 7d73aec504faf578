use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a developer command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A program ran and failed; it said why itself.
    #[error("`{command}` failed ({status})")]
    Program {
        /// Its command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },

    /// A program could not be started.
    #[error("`{command}` could not be started: {error}")]
    NotStarted {
        /// Its command line.
        command: String,
        /// The reason.
        error: io::Error,
    },

    /// A file could not be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },

    /// A step of `ci` failed.
    #[error("ci: step `{step}` failed: {error}")]
    Step {
        /// The step's name.
        step: &'static str,
        /// The reason.
        error: Box<TaskError>,
    },

    /// Something is missing or wrong; the text says what to do.
    #[error("{0}")]
    Message(String),

    /// The shell's current folder could not be used.
    #[error(transparent)]
    Shell(#[from] xshell::Error),

    /// `cargo metadata` failed.
    #[error(transparent)]
    Metadata(#[from] cargo_metadata::Error),
}

impl TaskError {
    /// A message.
    pub(crate) fn message(text: impl Into<String>) -> TaskError {
        TaskError::Message(text.into())
    }

    /// The exit code to end with: that of the program that failed, else 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            TaskError::Program { status, .. } => status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
            TaskError::Step { error, .. } => error.exit_code(),
            _ => 1,
        }
    }
}
