//! What is printed.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::error::CliError;

/// Prints a line on standard output.
///
/// # Errors
/// [`CliError::BrokenPipe`] if the reader has closed it.
pub fn line(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|error| broken(&error))
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// As for [`line()`].
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CliError::failed(format!("the answer is not JSON: {error}")))?;
    line(&text)
}

/// Prints a command's reply, as JSON or for people.
///
/// # Errors
/// As for [`line()`].
pub fn reply<R: Serialize>(
    as_json: bool,
    reply: &R,
    print: impl FnOnce(&R) -> Result<(), CliError>,
) -> Result<(), CliError> {
    if as_json { json(reply) } else { print(reply) }
}

/// Prints a message that is not a result on standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether a person watches standard error.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// The error of a write to standard output.
pub fn broken(error: &io::Error) -> CliError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CliError::BrokenPipe
    } else {
        CliError::failed(format!("standard output cannot be written: {error}"))
    }
}
