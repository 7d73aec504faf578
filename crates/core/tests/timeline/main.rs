//! The timeline machine against seeded worlds under virtual time.
//!
//! `DRIFTLINE_SEED=n` replays one seed of every test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod absence;
mod backlogs;
mod clocks;
mod counted;
mod first_minutes;
mod harness;
mod laws;
mod places;
mod quiet;
mod quirks;
mod scenes;
mod workloads;
mod world;
