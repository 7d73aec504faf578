//! What a trial found.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::api::Api;
use super::compare::{Difference, Fault, Shown, Stored};
use super::mirror::Mirror;
use super::server::Account;
use super::timelines::Timeline;
use super::writer::Record;
use crate::error::TaskError;

/// A source next to its timeline.
pub(super) struct SourceOutcome {
    name: String,
    shown: usize,
    stored: usize,
    pub(super) difference: Difference,
    /// Whether Driftline says that nothing is missing.
    claims_complete: bool,
    /// The verdict of `source verify`.
    verdict: String,
}

/// Asks the server and the mirror, which both run.
pub(super) fn gather(
    api: &Api,
    accounts: &[Account],
    mirror: &Mirror,
    timelines: &[Timeline],
    record: &Record,
) -> Result<Vec<SourceOutcome>, TaskError> {
    let mut all = Vec::new();
    for timeline in timelines {
        let statuses = timeline.walk(api, accounts)?;
        let shown: Vec<Shown> = statuses.iter().filter_map(Shown::of).collect();
        all.push((timeline, shown, mirror.export(&timeline.name)?));
    }
    let anywhere: Vec<Shown> = all
        .iter()
        .flat_map(|(_, shown, _)| shown)
        .cloned()
        .collect();
    let rows = all.iter().flat_map(|(.., rows)| rows);
    let edited = falsely_edited(mirror, rows, record)?;
    let outcomes = all.iter().map(|(timeline, shown, rows)| {
        let stored: Vec<Stored> = rows.iter().filter_map(Stored::of).collect();
        let report = mirror.json(&["source", "verify", &timeline.name])?;
        Ok(SourceOutcome {
            name: timeline.name.clone(),
            shown: shown.len(),
            stored: stored.len(),
            difference: Difference::new(shown, &stored, &anywhere, &edited),
            claims_complete: report["complete"] == true,
            verdict: report["verdict"].as_str().unwrap_or("none").to_owned(),
        })
    });
    outcomes.collect()
}

/// The IDs at the mirror of posts that it keeps in more versions than edits were asked for.
fn falsely_edited<'a>(
    mirror: &Mirror,
    rows: impl Iterator<Item = &'a Value>,
    record: &Record,
) -> Result<HashSet<String>, TaskError> {
    let posts = rows.filter_map(|row| Some((row["post_id"].as_str()?, &row["status"])));
    let posts: HashMap<&str, &Value> = posts.collect();
    let api = Api::new(&mirror.address, &mirror.address);
    let mut edited = HashSet::new();
    for (id, status) in posts {
        let answer = api.get(&format!("/api/v1/statuses/{id}/history"), None)?;
        let versions = answer.json.as_array().map_or(1, Vec::len) as u64;
        let uri = status["reblog"]["uri"].as_str().or(status["uri"].as_str());
        let asked = uri.and_then(|uri| record.edits.get(uri)).copied();
        if versions > 1 + asked.unwrap_or_default() {
            edited.insert(id.to_owned());
        }
    }
    Ok(edited)
}

/// Prints the sources as they are read by people.
pub(super) fn print(sources: &[SourceOutcome]) {
    let heads = Fault::ALL.map(|(_, name)| format!("{name:>9}")).concat();
    println!(
        "{:<14} {:>6} {:>6}{heads}  claim",
        "source", "shown", "stored"
    );
    for source in sources {
        let posts = |fault| source.difference.posts(fault);
        let counts = Fault::ALL.map(|(fault, _)| format!("{:>9}", posts(fault).len()));
        let is_lie = source.claims_complete && !posts(Fault::Missed).is_empty();
        println!(
            "{:<14} {:>6} {:>6}{}  {}{}",
            source.name,
            source.shown,
            source.stored,
            counts.concat(),
            source.verdict,
            if is_lie { " (not true)" } else { "" },
        );
    }
    for source in sources {
        for (fault, name) in Fault::ALL {
            let ids = source.difference.posts(fault);
            if fault != Fault::Unseen && !ids.is_empty() {
                let first = ids[..ids.len().min(MAX_NAMED)].join(" ");
                println!("{}, {name}: {first}", source.name);
            }
        }
    }
}

const MAX_NAMED: usize = 8;
