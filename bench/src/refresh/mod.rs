//! `refresh`: claims and saves, next to a bare driver.

mod cycle;
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
    #[arg(long, default_value_t = POSTS)]
    posts: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { posts: POSTS }
    }
}

const POSTS: u64 = 1_000_000;

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
