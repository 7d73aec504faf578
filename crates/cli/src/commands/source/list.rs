//! `source list`.

use serde_json::Value;

use crate::{duration::show_ms, error::CliError, output};

/// Prints a table of the sources.
pub(super) fn print(answer: &Value) -> Result<(), CliError> {
    let sources = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if sources.is_empty() {
        return output::line("no sources yet; `driftline source add URL` adds one");
    }
    let name_width = sources.iter().map(|source| text(source, "name").len());
    let width = name_width.max().unwrap_or(0).max(4);
    output::line(&format!(
        "{:<width$}  {:>7}  {:>8}  {:<8}  TIMELINE",
        "NAME", "UPDATES", "EVERY", "STATE"
    ))?;
    for source in sources {
        let state = match (&source["paused"], &source["readable"]) {
            (Value::Bool(true), _) => "paused",
            (_, Value::Bool(true)) => "readable",
            _ => "history",
        };
        output::line(&format!(
            "{:<width$}  {:>7}  {:>8}  {state:<8}  {} of {}",
            text(source, "name"),
            source["update_count"],
            show_ms(source["every_ms"].as_i64().unwrap_or(0)).to_string(),
            text(source, "timeline"),
            text(source, "upstream"),
        ))?;
    }
    Ok(())
}

fn text<'v>(source: &'v Value, key: &str) -> &'v str {
    source[key].as_str().unwrap_or_default()
}
