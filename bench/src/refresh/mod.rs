//! `refresh`: claims and saves, next to a bare driver.

mod bare;
mod cycle;
mod database;
mod fill;
mod latency;
mod made;
mod memory;
mod ours;
mod sqlite_peer;

use clap::Args;

pub(crate) use self::memory::{ChildOptions, run_child};
use crate::{Effort, failure::Failure};

/// What `refresh` takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How many posts are due
    #[arg(long, default_value_t = 1_000_000)]
    posts: u64,
}

/// Measures all of its parts.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let (posts, sizes): (_, &[u64]) = if effort.quick {
        (2_000, &[1_000, 10_000])
    } else {
        (options.posts, &[10_000, 1_000_000, 10_000_000])
    };
    cycle::run(posts, effort)?;
    latency::run(sizes, effort)?;
    memory::run(sizes, effort)
}
