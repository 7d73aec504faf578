//! `source`: the sources of a store.

mod list;

use clap::{Args, Subcommand};
use driftline_server::admin::{
    AddedSource, FillGap, ListSources, PauseSource, RemoveSource, Request, VerifySource,
};

use crate::{
    config::Config,
    error::CliError,
    output, shown,
    source_options::SourceOptions,
    store_access::{Missing, once},
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
            Self::List => {
                let sources = existing(config, ListSources).await?;
                output::reply(json, &sources, |sources| list::print(sources))
            }
            Self::Pause(SourceName { name }) => pause(config, json, name, true).await,
            Self::Resume(SourceName { name }) => pause(config, json, name, false).await,
            Self::Remove(SourceName { name }) => {
                let removed = existing(config, RemoveSource { name }).await?;
                output::reply(json, &removed, |of| {
                    output::line(&format!(
                        "{} removed, with {} entries and {} posts",
                        of.name, of.entries, of.posts
                    ))
                })
            }
            Self::Verify(SourceName { name }) => {
                let report = existing(config, VerifySource { name }).await?;
                output::reply(json, &report, shown::print)
            }
            Self::Fill(Fill { name, gap }) => {
                let requested = existing(config, FillGap { name, gap }).await?;
                output::reply(json, &requested, |of| {
                    output::line(&format!("{} will fill the gap", of.name))
                })
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

fn print_added(AddedSource { name, warning, .. }: &AddedSource) -> Result<(), CliError> {
    if let Some(warning) = warning {
        output::note(&format!("not tried: {warning}"));
    }
    output::line(&format!("{name} added; `driftline serve` reads it"))
}

async fn pause(config: &Config, json: bool, name: String, paused: bool) -> Result<(), CliError> {
    let reply = existing(config, PauseSource { name, paused }).await?;
    output::reply(json, &reply, |of| {
        let what = match (of.paused, of.changed) {
            (true, true) => "paused",
            (true, false) => "is paused already",
            (false, true) => "resumed",
            (false, false) => "is not paused",
        };
        output::line(&format!("{} {what}", of.name))
    })
}

/// Executes a command on a store that exists.
async fn existing<R: Request>(config: &Config, request: R) -> Result<R::Reply, CliError> {
    once(config, Missing::Refuse, request).await
}
