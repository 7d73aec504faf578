//! The options of `export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use driftline_runtime::now_ms;

use super::{
    format::{Format, MediaMode},
    record::TimeOf,
};
use crate::{shown, size};

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
    pub(super) command: Option<ExportCommand>,
    /// The sources' names; all sources without any, where `--out` is given.
    pub(super) names: Vec<String>,
    /// How posts are written.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Write files into this folder, which is made; one that has an export gets what came since, in
    /// further files.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Only posts from then on: a day, which begins in UTC, a time such as 2026-03-01T12:00:00Z, or how
    /// long ago, such as 2h.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| shown::ago_or_time_ms(text, now_ms()))]
    pub(super) since: Option<i64>,
    /// Only posts from before then.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| shown::ago_or_time_ms(text, now_ms()))]
    pub(super) until: Option<i64>,
    /// Which time of a post `--since` and `--until` are about.
    #[arg(long, value_enum, default_value_t)]
    pub(super) by: TimeOf,
    /// Only posts that match this predicate, such as '(cat OR dog) has:media': those that `driftline
    /// find` finds. See docs/predicates.md.
    #[arg(
        long,
        value_name = "QUERY",
        allow_hyphen_values = true,
        conflicts_with = "deleted"
    )]
    pub(super) matching: Option<String>,
    /// Also what deleted posts held, where it was kept.
    #[arg(long)]
    pub(super) deleted: bool,
    /// When the export goes on, take the content of posts that were deleted meanwhile out of the files that
    /// are there.
    #[arg(long, requires = "out", conflicts_with = "deleted")]
    pub(super) honour_deletions: bool,
    /// Also edits, deletions and departures since the last export into the folder, in files of their own.
    #[arg(long, requires = "out")]
    pub(super) changes: bool,
    /// Also each post's earlier versions and its counts over time, in files of their own.
    #[arg(long, requires = "out")]
    pub(super) history: bool,
    /// Also the posts' attachments: a line for each, or with `fetch` the files, too, in the folder `media`.
    #[arg(long, value_enum, value_name = "WHAT", requires = "out")]
    pub(super) media: Option<MediaMode>,
    /// The largest attachment that is fetched, such as 500KiB or 2GiB.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse_bytes, requires = "media")]
    pub(super) media_max_size: u64,
    /// Fetch attachments from private networks, too; from a source's own server its setting counts.
    #[arg(long, requires = "media")]
    pub(super) allow_private: bool,
    /// The most posts of a file.
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..), requires = "out")]
    pub(super) rows: u64,
}

#[derive(Debug, Subcommand)]
pub(super) enum ExportCommand {
    /// Check that the files of an export are whole, as its manifest says.
    Check {
        /// The export's folder.
        dir: PathBuf,
    },
}
