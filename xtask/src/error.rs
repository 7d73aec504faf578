use std::io;

/// Why a developer command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    /// A program could not be run.
    #[error("{0}: {1}")]
    Program(String, io::Error),

    /// Something is missing or wrong; the text says what to do.
    #[error("{0}")]
    Message(String),

    /// A program failed, and said why itself; or a file could not be read or written.
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
}
