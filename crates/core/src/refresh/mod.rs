//! The refresh machine: when a stored post is looked up again, and with which others.
//!
//! Source: the seed on keeping stored tweets updated. What it calls an age is computed here from
//! the time of birth; all delays are ms.

mod age_table;
mod batcher;
mod bisection;
mod freshness;
mod policy;
mod retry;
mod telling;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batcher::{Batcher, Fill};
pub use bisection::{Bisection, Verdict};
pub use freshness::{Asked, Freshness, Outcome, Refreshed, Sample, Word};
pub use policy::Policy;
