//! The `driftline` binary.
#![allow(
    unreachable_pub,
    reason = "nothing of a binary can be reached; `pub` says what a module offers"
)]

mod ages;
mod backup_record;
mod checksum;
mod cli;
mod commands;
mod config;
mod consent;
mod data_dir;
mod dispatch;
mod durable;
mod duration;
mod error;
mod hidden_input;
mod listen;
mod logs;
mod operator;
mod options;
mod origins;
mod output;
mod parse;
mod progress;
mod refresh_section;
mod reloading;
mod serving;
mod shown;
mod size;
mod socket;
mod source_reader;
mod source_settings;
mod stop;
mod store_access;
mod table;

use std::{process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser as _};

use crate::{
    cli::{Cli, Command},
    config::Config,
    error::CliError,
    logs::Log,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::begin(cli.global.quiet);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, CliError::BrokenPipe) {
                output::failure(&format!("driftline: {error}"));
            }
            ExitCode::from(error.status())
        }
    }
}

fn run(cli: Cli) -> Result<(), CliError> {
    match &cli.command {
        // It says itself what is wrong with the configuration.
        Command::Config(command) => return command.run(&cli.global),
        // These are right whatever the configuration is.
        Command::Completions(completions) => return completions.run(&mut Cli::command()),
        Command::Man(man) => return man.run(Cli::command()),
        _ => {}
    }
    let config = Config::load(&cli.global)?;
    let log = Log::start(&cli.global, &config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("no threads can be started: {error}")))?;
    let outcome = runtime.block_on(dispatch::run(cli, config, log));
    // A DNS look-up cannot be cancelled, and its result is no longer needed.
    runtime.shutdown_timeout(MAX_END);
    outcome
}

const MAX_END: Duration = Duration::from_secs(1);
