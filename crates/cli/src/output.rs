//! What is printed.

use std::{
    fmt,
    io::{self, Write as _},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
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

/// Prints a message that is neither a result nor an error on standard error, unless errors only are
/// printed.
pub fn note(text: &str) {
    if !IS_QUIET.load(Relaxed) {
        error(text);
    }
}

/// Prints an error, or a question, on standard error.
pub fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A progress bar, or a spinner where the end is not known; hidden unless a person watches. Its
/// template may show a `rate`.
pub fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    if IS_QUIET.load(Relaxed) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A failed write cannot be reported here.
        let _ = write!(out, "{:.0}/s", state.per_sec());
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("rate", rate));
    }
    bar
}

/// The time between two messages of progress: below a hidden bar, each is a line of its own.
pub fn between_progress(bar: &ProgressBar) -> Duration {
    match bar.is_hidden() {
        true => Duration::from_secs(10),
        false => REDRAWN,
    }
}

/// The progress of a command: a line that changes on a terminal, elsewhere a line now and then.
pub struct Progress {
    bar: ProgressBar,
    shown_at: Option<Instant>,
}

impl Progress {
    /// Begins to show, with a template of [`bar`] that has a message.
    pub fn start(template: &str, length: Option<u64>) -> Self {
        let bar = bar(length, template);
        bar.enable_steady_tick(REDRAWN);
        Self {
            bar,
            shown_at: None,
        }
    }

    /// Shows this message, if it is time for one.
    pub fn show(&mut self, text: impl FnOnce(&ProgressBar) -> String) {
        let is_shown = |at: Instant| at.elapsed() < between_progress(&self.bar);
        if self.shown_at.is_some_and(is_shown) {
            return;
        }
        let is_first = self.shown_at.replace(Instant::now()).is_none();
        let text = text(&self.bar);
        // A command that ends at once has nothing to say of its progress.
        if self.bar.is_hidden() && !is_first {
            note(&text);
        }
        self.bar.set_message(text);
    }

    /// Ends showing.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
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
/// The time between two drawings of a bar.
pub const REDRAWN: Duration = Duration::from_millis(200);
