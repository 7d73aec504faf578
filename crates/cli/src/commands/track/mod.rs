//! `track` and `hydrate`: posts from elsewhere.

mod forgetting;
mod ids;
mod looking_up;
mod outcomes;
mod plan;

use std::path::PathBuf;

use clap::Args;
use driftline_core::{
    api::Api,
    tracking::{self, TrackResult, TrackedPosts},
};
use driftline_mirror::is_usable;
use driftline_server::admin::{CountTracked, TrackPosts};
use ids::{CHUNK, IdLines};
use looking_up::LookingUp;
use outcomes::Outcomes;
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    config::Config,
    consent::Consent,
    error::CliError,
    output, parse,
    progress::{End, Progress},
    shown::count,
    stop,
    store_access::{self, Missing, StoreAccess},
};

/// Looks posts up by their IDs, stores them and keeps them fresh.
///
/// The IDs are stored as pending look-ups first: running the same command again goes on where it
/// ended, and skips IDs that are known. A running server looks them up, in full batches; without
/// one this command does. Posts that are found belong to a source of their own.
#[derive(Debug, Args)]
pub struct Track {
    #[command(flatten)]
    look_ups: LookUps,
    /// A file with an ID on each line; - for standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "forget")]
    ids: Option<String>,
    /// Only look them up: do not keep them fresh.
    #[arg(long)]
    once: bool,
    /// Neither look them up nor keep them fresh any more: the posts of --ids, or all tracked ones of
    /// the server. What is stored stays, and what another source keeps fresh stays so.
    #[arg(
        long,
        conflicts_with_all = ["once", "kind", "missing", "outcomes", "no_wait", "allow_private"]
    )]
    forget: bool,
    /// With --forget: do it without asking.
    #[arg(long, requires = "forget")]
    yes: bool,
}

/// Looks posts up by their IDs and stores them: `track --once`.
///
/// The IDs are stored as pending look-ups first: running the same command again goes on where it
/// ended, and skips IDs that are known. A running server looks them up, in full batches; without
/// one this command does. Posts that are found belong to a source of their own.
#[derive(Debug, Args)]
pub struct Hydrate {
    #[command(flatten)]
    look_ups: LookUps,
    /// A file with an ID on each line; - for standard input.
    #[arg(long, value_name = "FILE")]
    ids: String,
}

#[derive(Debug, Args)]
struct LookUps {
    /// The server: its address, with `https://`, or the host of one that is known.
    instance: String,
    /// The API that it speaks, where it is not known yet.
    #[arg(long, value_parser = parse::api())]
    kind: Option<Api>,
    /// Write the IDs whose posts were not found to this file, one on each line.
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,
    /// Write what became of each line to this file, as JSON lines: found, deleted, gone, not_visible,
    /// failed, waiting or unknown.
    #[arg(long, value_name = "FILE")]
    outcomes: Option<PathBuf>,
    /// End when all are stored, without asking the server and waiting until they are looked up.
    #[arg(long)]
    no_wait: bool,
    /// Allow the server to be in a private network, and tokens over plain http to it. That is kept with
    /// the source that holds the posts, and holds for no other server.
    #[arg(long)]
    allow_private: bool,
}

/// What became of the lines, and of the posts that were ever requested. Its keys are written in
/// alphabetical order.
#[derive(Debug, Default, Serialize)]
struct Counts {
    bad: u64,
    /// The first bad lines, with their numbers.
    #[serde(skip)]
    examples: Vec<(u64, String)>,
    found: u64,
    known: u64,
    /// Lines with something on them.
    lines: u64,
    missing: u64,
    new: u64,
    repeated: u64,
    source: String,
    stored: u64,
    waiting: u64,
}

impl Counts {
    /// Takes in what was answered to lines that were sent, in their order.
    fn take(&mut self, result: &TrackResult, sent: &[(u64, String)]) {
        self.new += result.new;
        self.stored += result.stored;
        self.known += result.waiting_or_missing;
        self.repeated += result.repeated;
        self.source.clone_from(&result.source);
        // What fits an ID need not fit one of that upstream; it comes back, perhaps cut.
        let mut bad = result.bad.iter().peekable();
        for (line, id) in sent {
            let is_bad = |bad: &&String| !bad.is_empty() && id.starts_with(bad.as_str());
            if bad.next_if(is_bad).is_some() {
                self.note_bad(*line, id);
            }
        }
    }

    fn take_totals(&mut self, totals: &TrackedPosts) {
        self.waiting = totals.waiting;
        self.missing = totals.missing;
        self.found = totals.found;
    }

    /// Notes the first bad lines on standard error, and how many more there are.
    fn note_examples(&self) {
        for (line, text) in &self.examples {
            output::note(&format!("line {line}: invalid ID {text:?}"));
        }
        match self.bad - self.examples.len() as u64 {
            0 => {}
            1 => output::note("1 more line has an invalid ID"),
            more => output::note(&format!("{more} more lines have invalid IDs")),
        }
    }

    fn note_bad(&mut self, line: u64, id: &str) {
        self.bad += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push((line, id.chars().take(60).collect()));
        }
        // Those that the server finds come later than those that were never sent.
        self.examples.sort_unstable();
    }
}

impl Track {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let instance = &self.look_ups.instance;
        match (&self.ids, self.forget) {
            (Some(ids), false) => self.look_ups.run((ids, self.once), config, json).await,
            (ids, _) => {
                let consent = Consent::of(self.yes);
                forgetting::run(instance, ids.as_deref(), consent, config, json).await
            }
        }
    }
}

impl Hydrate {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        self.look_ups.run((&self.ids, true), config, json).await
    }
}

impl LookUps {
    async fn run(
        &self,
        (ids, once): (&str, bool),
        config: &Config,
        json: bool,
    ) -> Result<(), CliError> {
        let outcomes = Outcomes::create(self.missing.as_deref(), self.outcomes.as_deref())?;
        let lines = IdLines::open(ids, outcomes.is_some())?;
        let stop = stop::on_signal()?;
        let work = async |access: &mut _| {
            self.carry_out(once, lines, outcomes, access, config, (stop, json))
                .await
        };
        store_access::with(config, Missing::Make, work).await
    }

    async fn carry_out(
        &self,
        once: bool,
        mut lines: IdLines,
        outcomes: Option<Outcomes>,
        store_access: &mut StoreAccess,
        config: &Config,
        (mut stop, json): (watch::Receiver<bool>, bool),
    ) -> Result<(), CliError> {
        let mut counts = self.add(once, &mut lines, store_access, &stop).await?;
        counts.note_examples();
        if counts.source.is_empty() {
            let name = lines.name();
            return Err(match (*stop.borrow(), counts.lines) {
                (true, _) => CliError::Interrupted("interrupted; no ID was added".into()),
                (_, 0) => CliError::usage(format!("{name} has no IDs; write one on each line")),
                (_, _) => CliError::usage(format!("{name} has no valid ID")),
            });
        }
        let instance = self.instance.clone();
        let mut totals = store_access.execute(CountTracked { instance }).await?;
        if !self.no_wait && totals.waiting > 0 && !*stop.borrow() {
            let looking_up =
                LookingUp::begin(&self.instance, &totals, store_access, config).await?;
            totals = looking_up.wait(totals, store_access, &mut stop).await?;
        }
        if let Some(outcomes) = outcomes {
            outcomes
                .write(lines.again()?, &self.instance, store_access)
                .await?;
        }
        counts.take_totals(&totals);
        output::reply(json, &counts, shown)?;
        if counts.waiting > 0 {
            output::note(
                "what waits is looked up by `driftline serve`, or when the command is run again",
            );
        }
        Ok(())
    }

    /// Adds every line as a pending look-up, in chunks, once the server has answered a request for one of
    /// the first. Ends early at the stop signal; what was added stays. Without a valid ID nothing is added,
    /// and the counts name no source.
    async fn add(
        &self,
        once: bool,
        lines: &mut IdLines,
        store_access: &mut StoreAccess,
        stop: &watch::Receiver<bool>,
    ) -> Result<Counts, CliError> {
        let mut counts = Counts::default();
        let mut progress = Progress::start(End::Unknown);
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            let line = lines.next()?;
            let is_end = line.is_none() || *stop.borrow();
            if let Some((number, id)) = line {
                counts.lines += u64::from(!id.is_empty());
                if is_usable(&id) {
                    chunk.push((number, id));
                } else if !id.is_empty() {
                    counts.note_bad(number, &id);
                }
            }
            if chunk.len() >= CHUNK || (is_end && !chunk.is_empty()) {
                let request = TrackPosts {
                    posts: tracking::Track {
                        instance: self.instance.clone(),
                        api: self.kind,
                        ids: chunk.iter().map(|(_, id)| id.clone()).collect(),
                        once,
                    },
                    allow_private: self.allow_private,
                    check: !self.no_wait && counts.source.is_empty(),
                };
                counts.take(&store_access.execute(request).await?, &chunk);
                progress.show(counts.lines, "line", || vec!["adding IDs".to_owned()]);
                chunk.clear();
            }
            if is_end {
                progress.finish();
                return Ok(counts);
            }
        }
    }
}

fn shown(of: &Counts) -> Vec<String> {
    vec![
        format!(
            "{}: {} new, {} stored already, {} pending before, {} repeated, {} bad",
            count(of.lines, "line"),
            of.new,
            of.stored,
            of.known,
            of.repeated,
            of.bad
        ),
        format!(
            "{}: {} found, {} unavailable, {} waiting",
            of.source,
            count(of.found, "post"),
            of.missing,
            of.waiting
        ),
    ]
}

const EXAMPLES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_the_upstream_cannot_have_are_bad_lines() {
        let mut counts = Counts::default();
        counts.note_bad(3, "a b");
        let long = "x".repeat(80);
        let sent = [(1, "12"), (2, "abc"), (4, "123"), (5, "abc"), (6, &long)];
        let sent = sent.map(|(line, id)| (line, id.to_owned()));
        let result = TrackResult {
            source: "x-tracked".into(),
            new: 2,
            bad: vec!["abc".into(), "abc".into(), "x".repeat(60)],
            ..TrackResult::default()
        };
        counts.take(&result, &sent);
        assert_eq!((counts.new, counts.bad), (2, 4));
        let lines: Vec<u64> = counts.examples.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 5, 6]);
        assert_eq!(counts.source, "x-tracked");
    }
}
