//! `track`: posts from elsewhere.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    time::Duration,
};

use clap::Args;
use driftline_core::{
    api::Api,
    tracking::{self, TrackResult, TrackedPosts},
};
use driftline_mirror::is_usable;
use driftline_server::admin::CountTracked;
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    config::Config,
    error::CliError,
    output, parse, stop,
    store_access::{self, Missing, StoreAccess},
};

/// Looks posts up by their IDs, stores them and keeps them fresh.
///
/// The IDs are stored as pending look-ups first: running the same command again goes on where it
/// ended, and skips IDs that are known. A running server looks them up, in full batches; without
/// one they wait for it. Posts that are found belong to a source of their own.
#[derive(Debug, Args)]
pub struct Track {
    /// The server: its address, with `https://`, or the host of one that is known.
    instance: String,
    /// The API that it speaks, where it is not known yet.
    #[arg(long, value_parser = parse::api())]
    kind: Option<Api>,
    /// A file with an ID on each line; - for standard input.
    #[arg(long, value_name = "FILE")]
    ids: String,
    /// Only look them up: do not keep them fresh.
    #[arg(long)]
    once: bool,
    /// End when all are stored, without waiting until they are looked up.
    #[arg(long)]
    no_wait: bool,
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
        let mut lines = open(&self.ids)?;
        let stop = stop::on_signal()?;
        let work = async |access: &mut _| self.carry_out(&mut lines, access, stop, json).await;
        store_access::with(config, Missing::Make, work).await
    }

    async fn carry_out(
        &self,
        lines: &mut dyn BufRead,
        store_access: &mut StoreAccess,
        mut stop: watch::Receiver<bool>,
        json: bool,
    ) -> Result<(), CliError> {
        let mut counts = self.add(lines, store_access, &stop).await?;
        for (line, text) in &counts.examples {
            output::note(&format!("line {line}: invalid ID {text:?}"));
        }
        let more = counts.bad - counts.examples.len() as u64;
        if more > 0 {
            output::note(&format!("{more} more lines have invalid IDs"));
        }
        let is_served = matches!(store_access, StoreAccess::Server(_));
        let mut totals = self.totals(store_access).await?;
        if is_served && !self.no_wait && counts.lines > 0 {
            totals = self.wait(store_access, totals, &mut stop).await?;
        }
        counts.waiting = totals.waiting;
        counts.missing = totals.missing;
        counts.found = totals.found;
        output::reply(json, &counts, shown)?;
        if !json && counts.waiting > 0 && !is_served {
            output::note("`driftline serve` looks up what waits");
        }
        Ok(())
    }

    /// Adds every line as a pending look-up, in chunks. Ends early at the stop signal; what was added
    /// stays.
    async fn add(
        &self,
        lines: &mut dyn BufRead,
        store_access: &mut StoreAccess,
        stop: &watch::Receiver<bool>,
    ) -> Result<Counts, CliError> {
        let mut counts = Counts::default();
        let bar = bar("adding IDs", None);
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut number = 0;
        loop {
            let line = next_line(lines, &self.ids)?;
            let is_end = line.is_none() || *stop.borrow();
            if let Some(line) = line {
                number += 1;
                let id = said(&line, number);
                counts.lines += u64::from(!id.is_empty());
                if is_usable(id) {
                    chunk.push((number, id.to_owned()));
                } else if !id.is_empty() {
                    counts.note_bad(number, id);
                }
            }
            // One answer at least names the source.
            let is_left = !chunk.is_empty() || counts.source.is_empty();
            if chunk.len() >= CHUNK || (is_end && is_left) {
                let request = tracking::Track {
                    instance: self.instance.clone(),
                    api: self.kind,
                    ids: chunk.iter().map(|(_, id)| id.clone()).collect(),
                    once: self.once,
                };
                counts.take(&store_access.execute(request).await?, &chunk);
                bar.inc(chunk.len() as u64);
                chunk.clear();
            }
            if is_end {
                bar.finish_and_clear();
                return Ok(counts);
            }
        }
    }

    /// Waits until every pending look-up is done.
    async fn wait(
        &self,
        store_access: &mut StoreAccess,
        mut totals: TrackedPosts,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<TrackedPosts, CliError> {
        let all = totals.waiting;
        let bar = bar("looking up", Some(all));
        while totals.waiting > 0 && !*stop.borrow() {
            bar.set_position(all.saturating_sub(totals.waiting));
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = stop.changed() => {}
            }
            totals = self.totals(store_access).await?;
        }
        bar.finish_and_clear();
        Ok(totals)
    }

    /// How many posts of the instance are waiting, missing and found.
    async fn totals(&self, store_access: &mut StoreAccess) -> Result<TrackedPosts, CliError> {
        let instance = self.instance.clone();
        store_access.execute(CountTracked { instance }).await
    }
}

fn shown(of: &Counts) -> Vec<String> {
    vec![
        format!(
            "{} lines: {} new, {} stored already, {} pending before, {} repeated, {} bad",
            of.lines, of.new, of.stored, of.known, of.repeated, of.bad
        ),
        format!(
            "{}: {} posts found, {} unavailable, {} waiting",
            of.source, of.found, of.missing, of.waiting
        ),
    ]
}

fn open(name: &str) -> Result<Box<dyn BufRead>, CliError> {
    if name == STDIN {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(name).map_err(|error| unreadable(name, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// A file that cannot be opened is a usage error; one that fails midway is not.
fn unreadable(name: &str, error: &io::Error) -> CliError {
    use io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    let what = Some(name).filter(|name| *name != STDIN);
    let what = what.unwrap_or("standard input");
    let text = format!("{what} cannot be read: {error}");
    match error.kind() {
        IsADirectory => CliError::usage(format!(
            "{name} is a folder; name a file with an ID on each line"
        )),
        NotFound | PermissionDenied => CliError::Usage(text),
        _ => CliError::Failed(text),
    }
}

/// What a line says: the first one may begin with the mark of its encoding.
fn said(line: &str, number: u64) -> &str {
    let marked = line.strip_prefix('\u{feff}').filter(|_| number == 1);
    marked.unwrap_or(line).trim()
}

/// The next line; bytes that are no UTF-8 are shown as such, and what is too long for an ID is cut.
fn next_line(lines: &mut dyn BufRead, name: &str) -> Result<Option<String>, CliError> {
    let mut line = Vec::new();
    let read = lines
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .map_err(|error| unreadable(name, &error))?;
    if read as u64 == MAX_LINE && line.last() != Some(&b'\n') {
        let skipped = lines.skip_until(b'\n');
        skipped.map_err(|error| unreadable(name, &error))?;
    }
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}

fn bar(what: &'static str, all: Option<u64>) -> ProgressBar {
    let template = match all {
        Some(_) => "{msg} {bar:30} {human_pos} of {human_len}, {rate}, {eta} left",
        None => "{spinner} {msg}: {human_pos}, {rate}",
    };
    let bar = output::bar(all, template).with_message(what);
    bar.enable_steady_tick(output::REDRAWN);
    bar
}

/// What names standard input.
const STDIN: &str = "-";
const CHUNK: usize = 2_000;
const EXAMPLES: usize = 10;
const MAX_LINE: u64 = 1024;
const LOOK: Duration = Duration::from_secs(1);

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
