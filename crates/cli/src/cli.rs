//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use driftline_core::social::AccountName;
use secrecy::SecretString;

use crate::commands::{
    account, backup, compact, completions, config, credential, demo, export, history, id, instance,
    man, migrate, mirror, node, refresh, restore, serve, simulate, source, status, tail, track,
    why,
};
use crate::{error::EXIT_STATUSES, logs::LogFormat};

/// Driftline keeps complete copies of timelines.
#[derive(Debug, Parser)]
#[command(name = "driftline", version = env!("DRIFTLINE_VERSION"), arg_required_else_help = true, after_long_help = EXIT_STATUSES)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The data folder [default: the platform's data folder + driftline].
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A PostgreSQL database instead of a file in the data folder:
    /// postgres://USER@HOST:PORT/DATABASE. A password is better kept in
    /// DRIFTLINE_STORE__DATABASE_URL, where no process list shows it.
    #[arg(long, global = true, value_name = "URL")]
    pub database_url: Option<SecretString>,
    /// The most connections to that database, 2 to 1000 [default: 8].
    #[arg(long, global = true, value_name = "N")]
    pub database_pool: Option<usize>,
    /// Only read the database file, and take no lock: also beside a server, and by itself where the
    /// file or its folder cannot be written.
    #[arg(long, global = true)]
    pub read_only: bool,
    /// The configuration [default: driftline.toml, here or in the platform's
    /// folder for configurations].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Execute the command as that account: on its own sources, and on what it may read. Without this,
    /// private sources of accounts are left out.
    #[arg(long = "as", global = true, value_name = "ACCOUNT")]
    pub as_account: Option<AccountName>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more on standard error; -vv logs everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print errors only on standard error: no warnings, no notes, no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// How lines of the log are written [default: text].
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Read every source and serve what is stored.
    Serve(serve::Serve),
    /// Show how the mirror is, on one screen.
    Status(status::Status),
    /// Add, list, check and remove sources.
    #[command(subcommand)]
    Source(source::Source),
    /// Show what servers honour of requests.
    #[command(subcommand)]
    Instance(instance::Instance),
    /// Mirror one timeline, then report on its completeness.
    Mirror(mirror::Mirror),
    /// Write sources' posts as JSON lines, CSV or Parquet, in order of arrival.
    Export(export::Export),
    /// Print posts as they are stored, or run a command for each.
    Tail(tail::Tail),
    /// List the processes that share the work, and drain them.
    #[command(subcommand)]
    Node(node::Node),
    /// Add, list, test and remove the credentials for servers.
    #[command(subcommand)]
    Credential(credential::Credential),
    /// Create, list, freeze, silence and delete the accounts of this server.
    #[command(subcommand)]
    Account(account::Account),
    /// Show how fresh stored posts are.
    #[command(subcommand)]
    Refresh(refresh::Refresh),
    /// Look posts up by their IDs and keep them fresh.
    Track(track::Track),
    /// Look posts up by their IDs, once.
    Hydrate(track::Hydrate),
    /// Show a post's state, when it is due next, and why.
    Why(why::Why),
    /// Print a post's counts over time, its edits and its deletion.
    History(history::History),
    /// Replay the stored history of counts under another policy or quota.
    Simulate(simulate::Simulate),
    /// Bring the database to this program's schema; every start does.
    Migrate(migrate::Migrate),
    /// Copy the store into a folder, proven; works while it is in use.
    Backup(backup::Backup),
    /// Restore a backup into an empty data folder or database.
    Restore(restore::Restore),
    /// Give free room of the database file back; on PostgreSQL show what is reusable.
    Compact(compact::Compact),
    /// Show the configuration and where it comes from, or check it.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make IDs, serve them, take them apart.
    #[command(subcommand)]
    Id(id::Id),
    /// Print completions for a shell.
    Completions(completions::Completions),
    /// Print the manual page, or write a page for every command.
    Man(man::Man),
    /// Mirror a simulated server next to two baseline pollers and compare.
    Demo(demo::Demo),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
