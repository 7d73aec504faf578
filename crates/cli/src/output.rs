//! What is printed.

use std::{
    io::{self, Write as _},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use serde::Serialize;
use serde_json::json;

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

/// Prints a command's reply: as JSON, or its lines for people.
///
/// # Errors
/// As for [`line()`].
pub fn reply<R: Serialize>(
    as_json: bool,
    reply: &R,
    shown: impl FnOnce(&R) -> Vec<String>,
) -> Result<(), CliError> {
    if as_json {
        return json(reply);
    }
    shown(reply).iter().try_for_each(|text| line(text))
}

/// Whether only errors are printed on standard error, from now on.
pub fn begin(quiet: bool) {
    IS_QUIET.store(quiet, Relaxed);
}

/// Messages are lines of JSON from now on.
pub fn begin_json_messages() {
    IS_JSON.store(true, Relaxed);
}

/// Whether only errors are printed on standard error.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Relaxed)
}

/// Prints a message that is neither a result nor an error on standard error, unless errors only are
/// printed.
pub fn note(text: &str) {
    if !is_quiet() {
        message("INFO", text);
    }
}

/// Prints the error that ends this process.
pub fn failure(text: &str) {
    message("ERROR", text);
}

fn message(level: &str, text: &str) {
    if !IS_JSON.load(Relaxed) {
        return error(text);
    }
    // As the lines of the log, so that standard error is of one kind.
    error(
        &json!({
            "timestamp": jiff::Timestamp::now().to_string(),
            "level": level,
            "fields": { "message": text },
            "target": "driftline",
        })
        .to_string(),
    );
}

/// Prints an error, or a question, on standard error.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The error of a write to standard output.
pub fn broken(error: &io::Error) -> CliError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CliError::BrokenPipe
    } else {
        CliError::failed(format!("standard output cannot be written: {error}"))
    }
}

/// `--quiet` of this process, which every message obeys, wherever it comes from.
static IS_QUIET: AtomicBool = AtomicBool::new(false);
/// `--log-format json` of this process, likewise.
static IS_JSON: AtomicBool = AtomicBool::new(false);
