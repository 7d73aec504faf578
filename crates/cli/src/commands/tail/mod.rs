//! `tail`: what is stored, as it is stored; and a command for each post.

mod command;
mod dead_letters;
mod following;
mod line;
mod state;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use driftline_core::{
    feed::{ChangeKinds, FeedPosition},
    predicate::Usage,
};
use driftline_server::admin::{FeedLine, ReadFeed, read_query};
use tokio::sync::watch;

pub use self::following::Following;
use self::{
    command::{PostCommand, Ran},
    dead_letters::DeadLetters,
    state::State,
};
use crate::{
    config::Config,
    duration::{duration, parse_ms},
    error::CliError,
    output, stop,
};

/// Prints posts as they are stored, or runs a command for each.
///
/// It goes on until it is ended, through restarts of the server too. At any position that it gave it
/// goes on without losing or repeating a post.
#[derive(Debug, Args)]
pub struct Tail {
    /// The names of sources; all sources without any.
    names: Vec<String>,
    /// Where to begin: `now`, `start`, or a position that `--json` gave.
    #[arg(long, value_name = "POSITION", default_value = NOW, value_parser = since)]
    since: Since,
    /// What is told, of `new`, `edit`, `delete` and `left` (its source lists it no more), with commas
    /// between.
    #[arg(long, value_name = "EVENTS", default_value_t)]
    events: ChangeKinds,
    /// Also posts that were older than what their source had shown when they were stored.
    #[arg(long)]
    history: bool,
    /// Only events of posts that match this predicate, in their present version, such as '(cat OR dog)
    /// -instance:bots.example': see docs/predicates.md. Deletions of all posts are passed on, since
    /// their texts are gone.
    #[arg(long, value_name = "QUERY", allow_hyphen_values = true)]
    matching: Option<String>,
    /// End when all that is stored was told.
    #[arg(long)]
    no_follow: bool,
    /// Keep the position in this file, and go on there the next time, whatever `--since` says.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Run this command by `sh -c` for each event, one after the other, instead of printing it. It gets
    /// the event's JSON on its standard input, and in its environment DRIFTLINE_EVENT (new, edit …),
    /// DRIFTLINE_EVENT_ID (the position) and DRIFTLINE_SOURCE. An event whose command ended well, but
    /// before that could be noted, is repeated, with the same ID.
    #[arg(long, value_name = "COMMAND", requires = "state")]
    exec: Option<String>,
    /// How long the command may take; then it and what it started is killed.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_ms, requires = "exec")]
    exec_timeout: i64,
    /// How often a command that fails is run. Then the event goes to the dead letters, FILE.failed.jsonl
    /// beside the state, and the next one follows.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), requires = "exec")]
    tries: u32,
}

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Since {
    Now,
    After(FeedPosition),
}

impl Tail {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if let Some(query) = &self.matching {
            read_query(query, config.as_account.as_ref(), Usage::Standing)?;
        }
        let stop = stop::on_signal()?;
        let mut state = self.state.clone().map(State::open).transpose()?;
        let known = state.as_ref().and_then(|state| state.position.clone());
        let after = match (known, &self.since) {
            (Some(known), _) => Some(known),
            (None, Since::After(position)) => Some(position.to_string()),
            (None, Since::Now) => None,
        };
        let mut sink = match &self.exec {
            None => Sink::Print { json },
            Some(command) => Sink::Exec {
                command: PostCommand {
                    text: command.clone(),
                    timeout: duration(self.exec_timeout).max(Duration::from_millis(1)),
                    tries: self.tries,
                    is_found: false,
                },
                failed: DeadLetters::beside(state.as_ref()),
            },
        };
        let request = ReadFeed {
            sources: self.names.clone(),
            after,
            events: self.events,
            history: self.history,
            tombstones: false,
            matching: self.matching.clone(),
            limit: PAGE,
            wait_ms: 0,
        };
        let mut following = Following::new(config, request, self.no_follow);
        let told = self.tell(&mut following, &mut state, &mut sink, stop).await;
        following.close().await;
        told
    }

    async fn tell(
        &self,
        following: &mut Following<'_>,
        state: &mut Option<State>,
        sink: &mut Sink,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), CliError> {
        while !*stop.borrow() {
            let page = tokio::select! {
                page = following.next() => page?,
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let Some(page) = page else { return Ok(()) };
            for line in page.events.iter().filter(|line| line.is_match) {
                if !sink.take(line, &mut stop).await? {
                    return Ok(());
                }
                if let (Sink::Exec { .. }, Some(state)) = (&*sink, state.as_mut()) {
                    state.keep(&line.position)?;
                }
            }
            if let Some(state) = state {
                state.keep(&page.position)?;
            }
        }
        Ok(())
    }
}

/// What becomes of the events.
enum Sink {
    Print {
        json: bool,
    },
    Exec {
        command: PostCommand,
        failed: DeadLetters,
    },
}

impl Sink {
    /// Returns whether the event is done with; it is not if the process is to end before.
    async fn take(
        &mut self,
        line: &FeedLine,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<bool, CliError> {
        match self {
            Self::Print { json: true } => output::line(&line::json(line)).map(|()| true),
            Self::Print { json: false } => output::line(&line::text(line)).map(|()| true),
            Self::Exec { command, failed } => match command.run(line, stop).await? {
                Ran::Well => Ok(true),
                Ran::Stopped => Ok(false),
                Ran::Failed(why) => {
                    failed.add(line, &why, command.tries)?;
                    Ok(true)
                }
            },
        }
    }
}

fn since(text: &str) -> Result<Since, String> {
    match text {
        NOW => Ok(Since::Now),
        position => position
            .parse()
            .map(Since::After)
            .map_err(|error: driftline_core::feed::FeedPositionError| error.to_string()),
    }
}

const NOW: &str = "now";
const PAGE: u32 = 200;
