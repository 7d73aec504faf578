//! What a trial found.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::api::Api;
use super::compare::{Difference, Shown, Stored};
use super::ladder::Ladder;
use super::mirror::Mirror;
use super::request_log::Counts;
use super::server::Account;
use super::timelines::Timeline;
use super::writer::Record;
use crate::error::TaskError;

/// A trial's result.
pub(super) struct Outcome {
    sources: Vec<SourceOutcome>,
    record: Record,
    /// Timelines that the server does not show, with its status.
    pub(super) refused: Vec<(String, u16)>,
    /// How the sources were read again.
    pub(super) ladder: Ladder,
    /// How often each was, while the accounts wrote.
    pub(super) looks: Vec<(String, u64)>,
    /// How long Driftline took to have them ready; or the sources that were not.
    pub(super) ready: Result<Duration, Vec<String>>,
    /// What Driftline asked for.
    pub(super) requests: Counts,
}

struct SourceOutcome {
    name: String,
    shown: usize,
    stored: usize,
    difference: Difference,
    /// Stored posts with more versions than edits were asked for, each with the surplus.
    false_edits: Vec<(String, u64)>,
    /// Whether Driftline says that nothing is missing.
    claims_complete: bool,
    /// What `source verify` begins with.
    claim: String,
}

impl Outcome {
    /// Asks the server and the mirror, which both run.
    pub(super) fn gather(
        api: &Api,
        reader: &Account,
        mirror: &Mirror,
        timelines: &[Timeline],
        record: Record,
    ) -> Result<Outcome, TaskError> {
        let mut all_shown = Vec::new();
        for timeline in timelines {
            let statuses = timeline.walk(api, reader)?;
            all_shown.push(statuses.iter().filter_map(Shown::of).collect::<Vec<_>>());
        }
        let anywhere = all_shown.concat();
        let mut surpluses = Surpluses::new(mirror, &record);
        let mut sources = Vec::new();
        for (timeline, shown) in timelines.iter().zip(&all_shown) {
            let name = &timeline.name;
            let rows = mirror.export(name)?;
            let stored: Vec<Stored> = rows.iter().filter_map(Stored::of).collect();
            let mut false_edits = Vec::new();
            for (row, post) in rows.iter().zip(&stored) {
                match surpluses.of(row, post)? {
                    0 => {}
                    surplus => false_edits.push((post.shown.id.clone(), surplus)),
                }
            }
            let report = mirror.json(&["source", "verify", name])?;
            sources.push(SourceOutcome {
                name: name.clone(),
                shown: shown.len(),
                stored: stored.len(),
                difference: Difference::of(shown, &stored, &anywhere),
                false_edits,
                claims_complete: report["complete"] == true,
                claim: mirror.claim(name)?,
            });
        }
        Ok(Outcome {
            sources,
            record,
            refused: Vec::new(),
            ladder: Ladder::Short,
            looks: Vec::new(),
            ready: Err(Vec::new()),
            requests: Counts::new(),
        })
    }

    /// Whether nothing is wrong with the copy, nor with what Driftline says of it.
    pub(super) fn is_good(&self) -> bool {
        let is_good =
            |source: &SourceOutcome| source.difference.is_good() && source.false_edits.is_empty();
        self.sources.iter().all(is_good)
    }

    /// Prints it as it is read by people.
    pub(super) fn print(&self) {
        println!(
            "{:<14} {:>6} {:>6} {:>6} {:>7} {:>9} {:>6} {:>9} {:>6}  claim",
            "source",
            "shown",
            "stored",
            "missed",
            "doubled",
            "f.deleted",
            "f.left",
            "f.edited",
            "unseen"
        );
        for source in &self.sources {
            let of = &source.difference;
            let edits: u64 = source.false_edits.iter().map(|(_, surplus)| surplus).sum();
            let lie = source.claims_complete && !of.missed.is_empty();
            println!(
                "{:<14} {:>6} {:>6} {:>6} {:>7} {:>9} {:>6} {:>9} {:>6}  {}{}",
                source.name,
                source.shown,
                source.stored,
                of.missed.len(),
                of.doubled.len(),
                of.falsely_deleted.len(),
                of.falsely_left.len(),
                edits,
                of.shown_no_more.len(),
                source.claim,
                if lie { " (not true)" } else { "" },
            );
        }
        for source in &self.sources {
            source.print_faults();
        }
        let looks = self
            .looks
            .iter()
            .map(|(name, looks)| format!("{name} {looks}"));
        println!(
            "looks during the writing: {}",
            looks.collect::<Vec<_>>().join(", ")
        );
        let ready = self.ladder.ready();
        match &self.ready {
            Ok(took) => println!("{ready} {} s after the last write", took.as_secs()),
            Err(sources) => println!("not {ready}: {}", sources.join(", ")),
        }
        for (name, status) in &self.refused {
            println!("not shown: {name} ({status})");
        }
        println!("written: {:?}", self.record.done);
        println!(
            "refused: {:?}; without an answer: {}",
            self.record.refused, self.record.unanswered
        );
        let requests: u64 = self.requests.values().sum();
        println!("{requests} requests by Driftline:");
        for ((kind, status), count) in &self.requests {
            println!("{count:>7}  {status:>3}  {kind}");
        }
    }
}

impl SourceOutcome {
    fn print_faults(&self) {
        let of = &self.difference;
        let edited: Vec<String> = self.false_edits.iter().map(|(id, _)| id.clone()).collect();
        for (what, ids) in [
            ("missed", &of.missed),
            ("doubled", &of.doubled),
            ("falsely deleted", &of.falsely_deleted),
            ("falsely left", &of.falsely_left),
            ("falsely edited", &edited),
        ] {
            if !ids.is_empty() {
                let first = ids.iter().take(MAX_NAMED).map(String::as_str);
                println!(
                    "{}, {what}: {}",
                    self.name,
                    first.collect::<Vec<_>>().join(" ")
                );
            }
        }
    }
}

/// The versions that the mirror keeps of posts beyond the edits that were asked for.
struct Surpluses<'a> {
    api: Api,
    record: &'a Record,
    known: HashMap<String, u64>,
}

impl<'a> Surpluses<'a> {
    fn new(mirror: &Mirror, record: &'a Record) -> Surpluses<'a> {
        Surpluses {
            api: Api::new(&mirror.address, &mirror.address),
            record,
            known: HashMap::new(),
        }
    }

    fn of(&mut self, row: &Value, post: &Stored) -> Result<u64, TaskError> {
        if let Some(known) = self.known.get(&post.post_id) {
            return Ok(*known);
        }
        let answer = self
            .api
            .get(&format!("/api/v1/statuses/{}/history", post.post_id), None)?;
        let versions = answer.json.as_array().map_or(1, Vec::len) as u64;
        let status = &row["status"];
        let of = if status["reblog"].is_object() {
            &status["reblog"]
        } else {
            status
        };
        let uri = of["uri"].as_str().unwrap_or_default();
        let asked = self.record.edits.get(uri).copied().unwrap_or_default();
        let surplus = versions.saturating_sub(1 + asked);
        self.known.insert(post.post_id.clone(), surplus);
        Ok(surplus)
    }
}

const MAX_NAMED: usize = 8;
