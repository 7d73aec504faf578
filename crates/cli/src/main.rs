//! The `driftline` binary.
#![allow(
    unreachable_pub,
    reason = "nothing of a binary can be reached; `pub` says what a module offers"
)]

mod ages;
mod cli;
mod commands;
mod config;
mod data_dir;
mod duration;
mod error;
mod id_options;
mod listen;
mod operator;
mod origins;
mod output;
mod parse;
mod refresh_section;
mod shown;
mod socket;
mod source_options;
mod source_reader;
mod source_settings;
mod stop;
mod store_access;
mod table;
mod token_options;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::{cli::Cli, config::Config, error::CliError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log(cli.global.verbose);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !matches!(error, CliError::BrokenPipe) {
                output::note(&format!("driftline: {error}"));
            }
            ExitCode::from(error.status())
        }
    }
}

fn run(cli: Cli) -> Result<(), CliError> {
    let config = Config::load(&cli.global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("no threads can be started: {error}")))?;
    let outcome = runtime.block_on(commands::run(cli, config));
    // A DNS look-up cannot be cancelled, and its result is no longer needed.
    runtime.shutdown_timeout(MAX_END);
    outcome
}

/// Standard output is for results alone.
fn log(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if verbose == 0 => EnvFilter::new(directives),
        _ => EnvFilter::default().add_directive(level.into()),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::is_watched())
        .init();
}

const MAX_END: Duration = Duration::from_secs(1);
