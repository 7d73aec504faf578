//! `source`: the sources of a store.

use clap::{Args, Subcommand};
use driftline_server::admin::{
    AddedSource, FillGap, ListSources, PauseSource, PausedSource, RemoveSource, RemovedSource,
    RequestedFill, SourceRow, VerifySource,
};

use crate::{
    config::Config,
    duration::show_ms,
    error::CliError,
    output, shown,
    source_options::SourceOptions,
    store_access::{Missing, once, show},
    table::{self, Column},
};

/// What can be done with sources.
#[derive(Debug, Subcommand)]
pub enum Source {
    /// Add a source; a running server begins to read it at once.
    Add(Box<Add>),
    /// List the sources.
    List,
    /// Fetch nothing for a source until it is resumed.
    Pause(SourceName),
    /// Fetch for a source again.
    Resume(SourceName),
    /// Remove a source and the posts that no other source has.
    Remove(SourceName),
    /// Report on a source's completeness.
    Verify(SourceName),
    /// Fill an open gap.
    Fill(Fill),
}

/// A source to add.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    source: SourceOptions,
    /// Add it without asking the server for the timeline, as where it cannot be reached now.
    #[arg(long)]
    no_check: bool,
    /// Ask servers in private networks too, and over plain http. A server that runs asks as it was
    /// started.
    #[arg(long)]
    allow_private: bool,
}

/// A source's name.
#[derive(Debug, Args)]
pub struct SourceName {
    /// The source's name.
    name: String,
}

/// An open gap of a source.
#[derive(Debug, Args)]
pub struct Fill {
    /// The source's name.
    name: String,
    /// The gap's first ID, as `source verify` shows it.
    gap: String,
}

impl Source {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::Add(add) => output::reply(json, &add.run(config).await?, print_added),
            Self::List => show(config, json, ListSources, print).await,
            Self::Pause(SourceName { name }) => pause(config, json, name, true).await,
            Self::Resume(SourceName { name }) => pause(config, json, name, false).await,
            Self::Remove(SourceName { name }) => {
                let print = |RemovedSource {
                                 name,
                                 entries,
                                 posts,
                             }: &_| {
                    output::line(&format!(
                        "{name} removed, with {entries} entries and {posts} posts"
                    ))
                };
                show(config, json, RemoveSource { name }, print)
                    .await
                    .map(drop)
            }
            Self::Verify(SourceName { name }) => {
                show(config, json, VerifySource { name }, shown::print)
                    .await
                    .map(drop)
            }
            Self::Fill(Fill { name, gap }) => {
                let print =
                    |of: &RequestedFill| output::line(&format!("{} will fill the gap", of.name));
                show(config, json, FillGap { name, gap }, print)
                    .await
                    .map(drop)
            }
        }
    }
}

impl Add {
    /// Adds the source, unless it is to be checked and the server does not answer with the timeline.
    async fn run(&self, config: &Config) -> Result<AddedSource, CliError> {
        let mut request = self.source.add_source(config)?;
        request.check = !self.no_check;
        let mut config = config.clone();
        config.upstream.allow_private |= self.allow_private;
        once(&config, Missing::Make, request).await
    }
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn print(sources: &Vec<SourceRow>) -> Result<(), CliError> {
    if sources.is_empty() {
        return output::line("no sources yet; `driftline source add URL` adds one");
    }
    let rows = sources.iter().map(|source| {
        [
            source.name.clone(),
            source.update_count.to_string(),
            show_ms(source.every_ms),
            format!("{} of {}", source.timeline, source.upstream),
            source.state_text.clone(),
        ]
    });
    table::print(0, COLUMNS, rows)
}

fn print_added(AddedSource { name, warning, .. }: &AddedSource) -> Result<(), CliError> {
    if let Some(warning) = warning {
        output::note(&format!("not tried: {warning}"));
    }
    output::line(&format!("{name} added; `driftline serve` reads it"))
}

async fn pause(config: &Config, json: bool, name: String, paused: bool) -> Result<(), CliError> {
    let print = |of: &PausedSource| {
        let what = match (of.paused, of.changed) {
            (true, true) => "paused",
            (true, false) => "is paused already",
            (false, true) => "resumed",
            (false, false) => "is not paused",
        };
        output::line(&format!("{} {what}", of.name))
    };
    let request = PauseSource { name, paused };
    show(config, json, request, print).await
}

/// What a source is doing comes last: why it fails may take some words.
const COLUMNS: [Column; 5] = [
    Column::Left("NAME"),
    Column::Right("UPDATES"),
    Column::Right("EVERY"),
    Column::Left("TIMELINE"),
    Column::Left("STATE"),
];
