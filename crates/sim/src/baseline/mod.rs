//! Baseline pollers, to compare with.
//!
//! Both pollers are given the benefit of the doubt: they page back, their
//! cursor moves only when a whole poll has succeeded, and all that they fetched
//! counts as stored.

mod poller;
mod run;

pub use poller::{Poller, WalkEnd};
pub use run::{Schedule, run};
