//! The refresh machine's parts.
//!
//! `DRIFTLINE_SEED=n` replays one seed of the simulations.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod age_table;
mod batcher;
mod bisection;
mod engagement;
mod experience;
mod freshness;
mod growth;
mod price;
mod search;
mod simulation;
mod value;
