//! What stops a benchmark.

use std::{error::Error, fmt};

/// Any error, with its causes; a benchmark has no reason to distinguish them.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure of the benchmark's own.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self(message)
    }
}
