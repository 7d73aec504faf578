//! `history`: a post over time.

use clap::Args;
use driftline_server::admin::Command;
use serde_json::Value;

use crate::{
    config::Config,
    error::CliError,
    output,
    reach::{Missing, once},
    shown,
};

/// Prints a post's counts over time, its edits and its deletion.
#[derive(Debug, Args)]
pub struct History {
    /// The post: its ID here, its address, or INSTANCE/ID.
    post: String,
    /// Print the counts as CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl History {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let post = self.post;
        let answer = once(config, Missing::Refuse, Command::History { post }).await?;
        if json {
            return output::json(&answer);
        }
        if self.csv {
            return csv(&answer);
        }
        print(&answer)
    }
}

/// Counts in words, those that the upstream does not count left out.
pub fn counts(row: &Value) -> String {
    let known = COUNTS.iter().filter_map(|name| {
        let count = row[*name].as_i64()?;
        Some(format!("{count} {name}"))
    });
    known.collect::<Vec<_>>().join(", ")
}

fn print(answer: &Value) -> Result<(), CliError> {
    let rows = answer["counts"].as_array().map(Vec::as_slice);
    for row in rows.unwrap_or_default() {
        let at = row["at_ms"].as_i64().map_or_else(String::new, shown::time);
        output::line(&format!("{at}  {}", counts(row)))?;
    }
    if let Some(at_ms) = answer["refreshed_at_ms"].as_i64() {
        output::line(&format!(
            "{}  still so at the last answer",
            shown::time(at_ms)
        ))?;
    }
    for version in answer["versions"].as_array().into_iter().flatten() {
        let at = version["until_ms"]
            .as_i64()
            .map_or_else(String::new, shown::time);
        let content = version["status"]["content"].as_str().unwrap_or_default();
        output::line(&format!(
            "{at}  {}; before: {content}",
            match version["ended_by"].as_str() {
                Some("edit") => "edited",
                _ => "deleted",
            }
        ))?;
    }
    if let Some(at_ms) = answer["deleted_at_ms"].as_i64() {
        output::line(&format!("{}  deleted", shown::time(at_ms)))?;
    }
    Ok(())
}

fn csv(answer: &Value) -> Result<(), CliError> {
    output::line(&format!("at_ms,{}", COUNTS.join(",")))?;
    for row in answer["counts"].as_array().into_iter().flatten() {
        let cells = COUNTS.iter().map(|name| {
            row[*name]
                .as_i64()
                .map_or_else(String::new, |n| n.to_string())
        });
        let cells: Vec<String> = cells.collect();
        output::line(&format!("{},{}", row["at_ms"], cells.join(",")))?;
    }
    Ok(())
}

const COUNTS: [&str; 5] = ["replies", "boosts", "favourites", "quotes", "views"];
