//! What the timeline machine makes of a workload, in virtual time and beside the usual pollers.
//!
//! A [`Workload`] says how many posts come and how late; [`run`] lets the machine copy it until its
//! bound is proven and for a while longer, and tells what was missed, what it cost and how long
//! posts took from visible to stored. [`run_baseline`] does the same for a poller that trusts
//! `since_id`.

mod baseline;
mod copy;
mod outcome;
mod server;
mod workload;
mod world;

pub use baseline::{Baseline, run_baseline};
pub use copy::{Length, run};
pub use outcome::{Delays, Outcome, PlanChange};
pub use workload::{Tail, Workload, tweet_lateness_ms};
