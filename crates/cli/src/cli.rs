//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    account, backup, compact, completions, config, credential, demo, export, find, history, id,
    index, instance, man, migrate, mirror, node, refresh, replica, restore, serve, simulate,
    source, status, tail, track, why,
};
use crate::{error::EXIT_STATUSES, options::global_options::Global};

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
    /// Find posts by words, authors, tags and other properties.
    Find(find::Find),
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
    /// Keep an offline copy of an account's library on this device.
    Replica(replica::Replica),
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
    /// Rebuild the search index.
    #[command(subcommand)]
    Index(index::Index),
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
