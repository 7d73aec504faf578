//! `sync`: replicas next to PouchDB and to mbsync, each with its server on this machine; and a library of a million objects.

mod crowd;
mod device;
mod library;
mod mail;
mod million;
mod notes;
mod peers;
mod phase;
mod posts;
mod pouchdb;
mod protocol;
mod server;

use std::path::PathBuf;

use clap::Args;

use crate::{Effort, failure::Failure, process::Driftline};

/// The options of `sync`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    driftline: Driftline,
    /// The folder in which npm has installed PouchDB
    #[arg(long, value_name = "FOLDER", default_value = POUCHDB)]
    pouchdb: PathBuf,
}

/// The size of a library, and the number of objects that change in a round.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    objects: usize,
    changes: usize,
}

/// Measures all of it. It fails at its end if a peer is not installed.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let missing = peers::run(options, effort)?;
    million::run(effort)?;
    match missing.as_slice() {
        [] => Ok(()),
        missing => Err(Failure::new(format!(
            "peer missing: {}; `cargo xtask bench sync` installs it where it can",
            missing.join(", ")
        ))),
    }
}

/// The main workspace installs the packages there.
const POUCHDB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pouchdb");
