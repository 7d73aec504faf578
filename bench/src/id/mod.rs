//! `id`: the generator next to other generators, and the ID service next to Redis's `INCR`.

mod library;
mod service;
mod versions;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::{Effort, failure::Failure, paths::DRIFTLINE};

/// What `id` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Only one of its parts
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// The driftline binary, built for release
    #[arg(long, value_name = "PATH", default_value = DRIFTLINE)]
    pub(crate) driftline: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The generators, without I/O
    Library,
    /// The service, next to Redis
    Service,
}

/// Measures the generators, then the services.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    if options.part != Some(Part::Service) {
        library::run(effort)?;
    }
    if options.part != Some(Part::Library) {
        service::run(&options.driftline, effort)?;
    }
    Ok(())
}
