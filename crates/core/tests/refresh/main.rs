//! The refresh machine's parts.
#![allow(clippy::unwrap_used)]

mod age_table;
mod batcher;
mod bisection;
mod freshness;
