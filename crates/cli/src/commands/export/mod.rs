//! `export`: what is stored, as lines on standard output or as files with a manifest.

mod check;
mod columns;
mod directory;
mod file;
mod manifest;
mod media;
mod media_fetch;
#[cfg(feature = "parquet")]
mod parquet_file;
mod part;
mod reading;
mod redaction;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use driftline_core::feed::FeedPosition;
use driftline_runtime::now_ms;
use serde::{Deserialize, Serialize};

use self::{
    directory::Directory,
    file::LineWriter,
    media::MediaMode,
    reading::{Filter, Reading, TimeOf},
};
use crate::{
    config::Config,
    error::CliError,
    output, shown, size,
    store_access::{self, Missing},
};

/// Writes sources' posts in order of arrival: to standard output, or with `--out` to files in a folder
/// with a manifest, where the next export goes on.
///
/// A line of JSON has the post in `status`, as the upstream wrote it, without what concerns
/// the account whose token read it (`favourited`, a poll's `voted`…); a post
/// known to be deleted has `deleted_at_ms`, and what was stored of it is left out. One
/// that the source lists no more, though it is not known to be deleted, has
/// `left_at_ms`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Export {
    #[command(subcommand)]
    command: Option<ExportCommand>,
    /// The sources' names; all sources without any, where `--out` is given.
    names: Vec<String>,
    /// How posts are written.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write files into this folder, which is made; one that has an export gets what came since, in
    /// further files.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only posts from then on: a day, which begins in UTC, a time such as 2026-03-01T12:00:00Z, or how
    /// long ago, such as 2h.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| shown::ago_or_time_ms(text, now_ms()))]
    since: Option<i64>,
    /// Only posts from before then.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| shown::ago_or_time_ms(text, now_ms()))]
    until: Option<i64>,
    /// Which time of a post `--since` and `--until` are about.
    #[arg(long, value_enum, default_value_t)]
    by: TimeOf,
    /// Also what deleted posts held, where it was kept.
    #[arg(long)]
    deleted: bool,
    /// When the export goes on, take the content of posts that were deleted meanwhile out of the files that
    /// are there.
    #[arg(long, requires = "out", conflicts_with = "deleted")]
    honour_deletions: bool,
    /// Also edits, deletions and departures since the last export into the folder, in files of their own.
    #[arg(long, requires = "out")]
    changes: bool,
    /// Also each post's earlier versions and its counts over time, in files of their own.
    #[arg(long, requires = "out")]
    history: bool,
    /// Also the posts' attachments: a line for each, or with `fetch` the files, too, in the folder `media`.
    #[arg(long, value_enum, value_name = "WHAT", requires = "out")]
    media: Option<MediaMode>,
    /// The largest attachment that is fetched, such as 500KiB or 2GiB.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse_bytes, requires = "media")]
    media_max_size: u64,
    /// Fetch attachments from private networks, too; from a source's own server its setting counts.
    #[arg(long, requires = "media")]
    allow_private: bool,
    /// The most posts of a file.
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..), requires = "out")]
    rows: u64,
}

#[derive(Debug, Subcommand)]
enum ExportCommand {
    /// Check that the files of an export are whole, as its manifest says.
    Check {
        /// The export's folder.
        dir: PathBuf,
    },
}

/// How posts are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    #[default]
    Jsonl,
    /// Comma-separated values, with the names of the columns first.
    Csv,
    /// Apache Parquet; needs --out.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// How names of files of it end.
    fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
        }
    }
}

impl Export {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if let Some(ExportCommand::Check { dir }) = &self.command {
            return check::run(dir, json);
        }
        if let Some(dir) = self.out.clone() {
            return store_access::with(config, Missing::Refuse, async |access| {
                let client = match self.media {
                    Some(MediaMode::Fetch) => Some(config.http(self.allow_private)?),
                    _ => None,
                };
                Directory::open(dir, &self, client)?
                    .write(access, json)
                    .await
            })
            .await;
        }
        if self.names.is_empty() {
            return Err(CliError::usage(
                "name the sources to export; `driftline source list` shows the names",
            ));
        }
        store_access::with(config, Missing::Refuse, async |access| {
            let mut lines = LineWriter::new(self.format, std::io::stdout().lock())?;
            let mut reading = Reading::new(&self.names, self.filter(), &FeedPosition::default());
            while let Some(page) = reading.next(access).await? {
                for record in &page {
                    lines
                        .write(record)
                        .map_err(|error| output::broken(&error))?;
                }
                lines.flush().map_err(|error| output::broken(&error))?;
            }
            lines.flush().map_err(|error| output::broken(&error))
        })
        .await
    }

    fn filter(&self) -> Filter {
        Filter {
            since_ms: self.since,
            until_ms: self.until,
            by: self.by,
            deleted: self.deleted,
        }
    }
}
