//! Options of every command.

use std::path::PathBuf;

use clap::Args;
use driftline_core::social::AccountName;
use secrecy::SecretString;

use super::log_format::LogFormat;

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
