use std::{
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
};

use driftline_runtime::now_ms;
use driftline_server::admin::FeedLine;

use super::{line, state::State};
use crate::{error::CliError, output};

/// The events whose command failed at every try, a line of JSON each.
#[derive(Debug)]
pub struct DeadLetters {
    path: PathBuf,
}

impl DeadLetters {
    /// Those of a state.
    pub fn beside(state: Option<&State>) -> Self {
        let path = state.map(|state| state.beside("failed.jsonl"));
        Self {
            path: path.unwrap_or_else(|| "failed.jsonl".into()),
        }
    }

    /// Adds an event, durably.
    ///
    /// # Errors
    /// [`CliError`] if the file cannot be written: then the event is not done with.
    pub fn add(&self, line: &FeedLine, error: &str, tries: u32) -> Result<(), CliError> {
        let path = self.path.display();
        output::note(&format!(
            "driftline: the command failed {tries} times for the event {} ({error}); it is in {path} now",
            line.position
        ));
        let written = self.append(line, error, tries);
        written.map_err(|error| CliError::failed(format!("{path} cannot be written: {error}")))
    }

    fn append(&self, line: &FeedLine, error: &str, tries: u32) -> io::Result<()> {
        let text = line::json(line);
        let head = serde_json::json!({ "failed_at_ms": now_ms(), "error": error, "tries": tries });
        let head = head.to_string();
        // Two objects as one.
        let whole = format!("{},{}\n", head.trim_end_matches('}'), &text[1..]);
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        file.write_all(whole.as_bytes())?;
        file.sync_data()
    }
}
