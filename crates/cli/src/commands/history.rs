//! `history`: a post over time.

use clap::Args;
use driftline_server::admin::Command;
use serde_json::Value;

use crate::{
    config::Config,
    error::CliError,
    output, shown,
    store_access::{Missing, once},
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
    for line in timeline(answer) {
        output::line(&line)?;
    }
    Ok(())
}

/// The events of a post, in order of time, and the open questions.
fn timeline(answer: &Value) -> Vec<String> {
    let rows = |key: &str| answer[key].as_array().map_or(&[][..], Vec::as_slice);
    let deleted_at_ms = answer["deleted_at_ms"].as_i64();
    let versions = rows("versions");
    let is_deletion = |version: &&Value| version["ended_by"] != "edit";
    // A post that came back may have been deleted before; the last deletion is the valid one.
    let last_deletion = versions
        .iter()
        .filter(is_deletion)
        .max_by_key(|version| version["until_ms"].as_i64());
    let current = last_deletion.filter(|_| deleted_at_ms.is_some());
    let mut events: Vec<(i64, String)> = Vec::new();
    for row in rows("counts") {
        events.extend(row["at_ms"].as_i64().map(|at_ms| (at_ms, counts(row))));
    }
    for version in versions {
        if current.is_some_and(|current| std::ptr::eq(current, version)) {
            continue;
        }
        let what = match version["ended_by"].as_str() {
            Some("edit") => "edited",
            _ => "deleted",
        };
        let at_ms = version["until_ms"].as_i64();
        events.extend(at_ms.map(|at_ms| (at_ms, format!("{what}; before: {}", content(version)))));
    }
    let outcome = answer["outcome"].as_str();
    match (deleted_at_ms, answer["refreshed_at_ms"].as_i64()) {
        (Some(at_ms), _) => {
            let before = current.map(|version| format!("; before: {}", content(version)));
            events.push((at_ms, format!("deleted{}", before.unwrap_or_default())));
        }
        (None, Some(at_ms)) if outcome == Some("hidden") => events.push((
            at_ms,
            "hidden at the last answer: it exists, or may, but is not shown to us".to_owned(),
        )),
        (None, Some(at_ms)) => {
            events.push((at_ms, "still so at the last answer with it".to_owned()));
        }
        (None, None) => {}
    }
    events.sort_by_key(|(at_ms, _)| *at_ms);
    let lines = events.into_iter();
    let mut lines: Vec<String> = lines
        .map(|(at_ms, what)| format!("{}  {what}", shown::time(at_ms)))
        .collect();
    lines.extend(match outcome {
        _ if deleted_at_ms.is_some() => None,
        Some("missing") => Some(
            "since then an answer left it out: it is asked for once more before it counts as deleted"
                .to_owned(),
        ),
        Some("failed") => Some("since then look-ups brought nothing".to_owned()),
        _ => None,
    });
    lines
}

fn content(version: &Value) -> &str {
    version["status"]["content"].as_str().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(more: &Value) -> Vec<String> {
        let mut answer = json!({
            "counts": [
                { "at_ms": 1_000, "boosts": 1 },
                { "at_ms": 5_000, "boosts": 2 },
            ],
            "versions": [],
            "refreshed_at_ms": 9_000,
            "deleted_at_ms": null,
            "outcome": "unchanged",
        });
        for (key, value) in more.as_object().unwrap() {
            answer[key] = value.clone();
        }
        let lines = timeline(&answer).into_iter();
        // The day is the same in all of them.
        lines
            .map(|line| line.replace("1970-01-01 00:00:0", ""))
            .collect()
    }

    fn version(until_ms: i64, ended_by: &str, content: &str) -> Value {
        json!({ "until_ms": until_ms, "ended_by": ended_by, "status": { "content": content } })
    }

    #[test]
    fn edits_are_listed_between_the_counts_before_and_after_them() {
        let edited = json!({ "versions": [version(3_000, "edit", "typo")] });
        let expected = [
            "1.000Z  1 boosts",
            "3.000Z  edited; before: typo",
            "5.000Z  2 boosts",
            "9.000Z  still so at the last answer with it",
        ];
        assert_eq!(events(&edited), expected);
    }

    #[test]
    fn a_deletion_is_one_line_and_the_last() {
        let deleted = json!({
            "versions": [version(3_000, "deletion", "first"), version(9_100, "deletion", "last")],
            "deleted_at_ms": 9_050,
            "outcome": "deleted",
        });
        let expected = [
            "1.000Z  1 boosts",
            "3.000Z  deleted; before: first",
            "5.000Z  2 boosts",
            "9.050Z  deleted; before: last",
        ];
        assert_eq!(events(&deleted), expected);
        let erased = events(&json!({ "deleted_at_ms": 9_050 }));
        assert_eq!(erased[2], "9.050Z  deleted");
        assert_eq!(erased.len(), 3);
    }

    #[test]
    fn the_last_word_is_no_other_than_the_last_answers() {
        let last = |outcome: &str| events(&json!({ "outcome": outcome })).pop().unwrap();
        assert!(last("missing").starts_with("since then an answer left it out"));
        assert!(last("failed").starts_with("since then look-ups brought nothing"));
        assert!(last("hidden").starts_with("9.000Z  hidden at the last answer"));
        assert!(last("updated").starts_with("9.000Z  still so"));
    }
}
