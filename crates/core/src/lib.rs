//! Driftline's pure machines and domain types.
//!
//! This crate reads no clock, draws no random numbers, and opens no files or sockets. Times and
//! random numbers are arguments. It does not know HTTP, SQL or an async runtime.

#[macro_use]
mod named_enum;

pub mod answer;
pub mod api;
pub mod clock;
pub mod edit_history;
pub mod feed;
pub mod filter_matcher;
pub mod names;
pub mod post;
pub mod post_text;
pub mod predicate;
pub mod quota;
pub mod refresh;
pub mod rng;
pub mod sharing;
pub mod social;
pub mod source_kind;
pub mod sync;
pub mod text;
pub mod thread;
pub mod timeline;
pub mod tracking;
pub mod upstream_id;
