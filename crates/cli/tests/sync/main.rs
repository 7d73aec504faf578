//! Replicas and their server over a network that cuts, stalls, repeats and reorders, all of them killed.
//!
//! `DRIFTLINE_SEED=n` replays the edits, the faults and the moments, `DRIFTLINE_KILLS=n` kills that often.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod convergence;
mod edits;
mod first_sync;
mod full_disk;
mod note_history;
mod outage;
mod proxy;
#[path = "../support/mod.rs"]
mod support;
mod watch;

/// The variable's number.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
