//! `id`: the generator next to ferroid's, and the ID service next to Redis's `INCR`.

mod library;
mod service;

use crate::{Effort, failure::Failure, process::Driftline};

/// Measures the generators, then the services.
pub(crate) fn run(driftline: &Driftline, effort: Effort) -> Result<(), Failure> {
    library::run(effort)?;
    service::run(driftline, effort)
}
