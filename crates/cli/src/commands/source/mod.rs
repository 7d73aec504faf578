//! `source`: the sources of a store.

mod list;

use clap::{Args, Subcommand};
use driftline_server::admin::Command;
use serde_json::Value;

use crate::{
    config::Config,
    error::CliError,
    output, shown,
    source_options::SourceOptions,
    store_access::{Missing, StoreAccess, once},
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
        let answer = match &self {
            Self::Add(add) => add.run(config).await?,
            other => once(config, Missing::Refuse, other.command()).await?,
        };
        if json {
            return output::json(&answer);
        }
        match self {
            Self::Add(_) => {
                if let Some(warning) = answer["warning"].as_str() {
                    output::note(&format!("not tried: {warning}"));
                }
                said(&answer, "added; `driftline serve` reads it")
            }
            Self::List => list::print(&answer),
            Self::Pause(_) if answer["changed"] == false => said(&answer, "is paused already"),
            Self::Pause(_) => said(&answer, "paused"),
            Self::Resume(_) if answer["changed"] == false => said(&answer, "is not paused"),
            Self::Resume(_) => said(&answer, "resumed"),
            Self::Remove(_) => said(
                &answer,
                &format!(
                    "removed, with {} entries and {} posts",
                    answer["entries"], answer["posts"]
                ),
            ),
            Self::Fill(_) => said(&answer, "will fill the gap"),
            Self::Verify(_) => {
                let report = serde_json::from_value(answer).map_err(|error| {
                    CliError::failed(format!(
                        "the server's report is not understood ({error}); use the same version of driftline for both"
                    ))
                })?;
                shown::print(&report)
            }
        }
    }

    /// The command that another than `add` is.
    fn command(&self) -> Command {
        match self {
            Self::Add(_) | Self::List => Command::List,
            Self::Pause(SourceName { name }) => Command::Pause { name: name.clone() },
            Self::Resume(SourceName { name }) => Command::Resume { name: name.clone() },
            Self::Remove(SourceName { name }) => Command::Remove { name: name.clone() },
            Self::Verify(SourceName { name }) => Command::Verify { name: name.clone() },
            Self::Fill(Fill { name, gap }) => Command::Fill {
                name: name.clone(),
                gap: gap.clone(),
            },
        }
    }
}

impl Add {
    /// Asks the server for the timeline, and adds the source if it answers.
    async fn run(&self, config: &Config) -> Result<Value, CliError> {
        let source = Box::new(self.source.add_source(config)?);
        let mut config = config.clone();
        config.upstream.allow_private |= self.allow_private;
        let mut store_access = StoreAccess::open(&config, Missing::Make).await?;
        let outcome = async {
            let checked = match self.no_check {
                true => Value::Null,
                false => store_access.execute(Command::Check(source.clone())).await?,
            };
            let mut added = store_access.execute(Command::Add(source)).await?;
            added["warning"] = checked["warning"].clone();
            Ok(added)
        };
        let outcome = outcome.await;
        store_access.close().await;
        outcome
    }
}

fn said(answer: &Value, what: &str) -> Result<(), CliError> {
    output::line(&format!(
        "{} {what}",
        answer["name"].as_str().unwrap_or_default()
    ))
}
