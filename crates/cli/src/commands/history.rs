//! `history`: a post over time.

use std::collections::HashMap;

use clap::Args;
use driftline_core::{post::Counts, refresh::LookupOutcome};
use driftline_server::admin::{PostHistory, ShowHistory, Version};
use driftline_store::history::EndedBy;
use serde_json::value::RawValue;

use crate::{config::Config, error::CliError, shown, store_access::show};

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
        let lines = if self.csv { csv } else { timeline };
        let request = ShowHistory { post: self.post };
        show(config, json, request, lines).await
    }
}

/// Counts in words, those that the upstream does not count left out.
pub fn counts(counts: &Counts) -> String {
    let known = named(counts).into_iter();
    let known = known.filter_map(|(name, count)| Some(format!("{} {name}", count?)));
    known.collect::<Vec<_>>().join(", ")
}

fn named(counts: &Counts) -> [(&'static str, Option<i64>); 5] {
    [
        ("replies", counts.replies),
        ("boosts", counts.boosts),
        ("favourites", counts.favourites),
        ("quotes", counts.quotes),
        ("views", counts.views),
    ]
}

/// The events of a post, in order of time, and the open questions.
fn timeline(history: &PostHistory) -> Vec<String> {
    let deleted_at_ms = history.deleted_at_ms;
    // A post that came back may have been deleted before; the last deletion is the valid one.
    let deletions = history
        .versions
        .iter()
        .filter(|of| of.ended_by == EndedBy::Deletion);
    let current = deletions.max_by_key(|version| version.until_ms);
    let current = current.filter(|_| deleted_at_ms.is_some());
    let rows = history.counts.iter();
    let mut events: Vec<(i64, String)> = rows.map(|row| (row.at_ms, counts(&row.counts))).collect();
    for version in &history.versions {
        if current.is_some_and(|current| std::ptr::eq(current, version)) {
            continue;
        }
        let what = match version.ended_by {
            EndedBy::Edit => "edited",
            EndedBy::Deletion => "deleted",
        };
        let before = content(version);
        events.push((version.until_ms, format!("{what}; before: {before}")));
    }
    match (deleted_at_ms, history.refreshed_at_ms) {
        (Some(at_ms), _) => {
            let before = current.map(|version| format!("; before: {}", content(version)));
            events.push((at_ms, format!("deleted{}", before.unwrap_or_default())));
        }
        (None, Some(at_ms)) if history.outcome == Some(LookupOutcome::Hidden) => events.push((
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
    let lines = lines.map(|(at_ms, what)| format!("{}  {what}", shown::time(at_ms)));
    let open = match history.outcome {
        _ if deleted_at_ms.is_some() => None,
        Some(LookupOutcome::Missing) => Some(
            "since then an answer left it out: it is asked for once more before it counts as deleted"
                .to_owned(),
        ),
        Some(LookupOutcome::Failed) => Some("since then look-ups brought nothing".to_owned()),
        _ => None,
    };
    lines.chain(open).collect()
}

/// The text of a version, if its upstream's posts have a `content`.
fn content(version: &Version) -> String {
    // Numbers in it may be larger than any that is read as one.
    let members = version
        .status
        .as_ref()
        .and_then(|status| serde_json::from_str::<HashMap<String, &RawValue>>(status.get()).ok());
    let content = members
        .and_then(|members| serde_json::from_str::<String>(members.get("content")?.get()).ok());
    content.unwrap_or_default()
}

fn csv(history: &PostHistory) -> Vec<String> {
    let names = named(&Counts::default()).map(|(name, _)| name);
    let head = format!("at_ms,{}", names.join(","));
    let rows = history.counts.iter().map(|row| {
        let count =
            |(_, count): (_, Option<i64>)| count.map_or_else(String::new, |of| of.to_string());
        format!("{},{}", row.at_ms, named(&row.counts).map(count).join(","))
    });
    std::iter::once(head).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use driftline_store::{LocalId, refresh::CountsAt};

    use super::*;

    fn unchanged() -> PostHistory {
        let boosts = |at_ms, boosts| CountsAt {
            at_ms,
            counts: Counts {
                boosts: Some(boosts),
                ..Counts::default()
            },
        };
        PostHistory {
            id: LocalId::new(1),
            upstream_id: "1".into(),
            counts: vec![boosts(1_000, 1), boosts(5_000, 2)],
            versions: Vec::new(),
            refreshed_at_ms: Some(9_000),
            outcome: Some(LookupOutcome::Unchanged),
            deleted_at_ms: None,
        }
    }

    /// What is shown, without the day, which is the same in all of it.
    fn events(history: &PostHistory) -> Vec<String> {
        let lines = timeline(history).into_iter();
        lines
            .map(|line| line.replace("1970-01-01 00:00:0", ""))
            .collect()
    }

    fn version(until_ms: i64, ended_by: EndedBy, content: &str) -> Version {
        let status = format!(r#"{{"n":1e400,"content":"before","content":"{content}"}}"#);
        Version {
            until_ms,
            ended_by,
            status: Some(RawValue::from_string(status).unwrap()),
        }
    }

    #[test]
    fn edits_and_the_deletion_are_listed_in_order_of_time() {
        let (one, two) = ("1.000Z  1 boosts", "5.000Z  2 boosts");
        let mut history = unchanged();
        history.versions = vec![version(3_000, EndedBy::Edit, "typo")];
        let still = "9.000Z  still so at the last answer with it";
        assert_eq!(
            events(&history),
            [one, "3.000Z  edited; before: typo", two, still]
        );
        history.deleted_at_ms = Some(9_050);
        history.versions = vec![
            version(3_000, EndedBy::Deletion, "first"),
            version(9_100, EndedBy::Deletion, "last"),
        ];
        let (first, last) = (
            "3.000Z  deleted; before: first",
            "9.050Z  deleted; before: last",
        );
        assert_eq!(events(&history), [one, first, two, last]);
        // Erased.
        history.versions.clear();
        assert_eq!(events(&history), [one, two, "9.050Z  deleted"]);
    }

    #[test]
    fn the_last_word_is_no_other_than_the_last_answers() {
        let mut history = unchanged();
        for (outcome, text) in [
            (LookupOutcome::Missing, "since then an answer left it out"),
            (LookupOutcome::Failed, "since then look-ups brought nothing"),
            (LookupOutcome::Hidden, "9.000Z  hidden at the last answer"),
            (LookupOutcome::Updated, "9.000Z  still so"),
        ] {
            history.outcome = Some(outcome);
            let last = events(&history).pop().unwrap();
            assert!(last.starts_with(text), "{last}");
        }
    }
}
