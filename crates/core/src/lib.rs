//! Driftline's pure machines and domain types.
//!
//! Nothing in this crate reads a clock, draws a random number, or opens a
//! file or a socket: time and random numbers come in as arguments. It knows no
//! HTTP, no SQL and no async runtime.

#[macro_use]
mod named_enum;

pub mod acct;
pub mod answer;
pub mod api;
pub mod audience;
pub mod clock;
pub mod edit_history;
pub mod feed;
pub mod filter_matcher;
pub mod object_uri;
pub mod post;
pub mod quota;
pub mod refresh;
pub mod rng;
pub mod sharing;
pub mod social;
pub mod text;
pub mod thread;
pub mod timeline;
pub mod tracking;
pub mod upstream_id;
