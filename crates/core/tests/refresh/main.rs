//! The refresh machine's parts.
//!
//! `DRIFTLINE_SEED=n` replays one seed of the drawn tests.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod age_table;
mod batch_rule;
mod bisection;
mod freshness;
mod growth;
mod learned_state;
mod price;
mod refresh_history;
mod value;
