//! Pollers on a workload in virtual time: the timeline machine, and the baselines.
//!
//! A [`Workload`] determines the number of posts and their lateness. [`run`] lets the machine copy
//! it until its bound is proven and for some time longer. It measures missed posts, cost and the
//! delay from visible to stored. [`run_baseline`] does the same for a poller that trusts
//! `since_id`.

mod baseline;
mod copy;
mod outcome;
mod server;
mod tail;

pub use baseline::run_baseline;
pub use copy::{Length, run};
pub use outcome::{Delays, EARLY_MS, EarlyPost, PlanChange, PollerOutcome};
pub use tail::{Tail, Workload};
