//! The service of IDs: the real binary, with real clients of Thrift.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod flags;
mod http;
mod nodes;
mod protocol;
mod python;
mod restarts;
mod service;
#[path = "../support/mod.rs"]
mod support;
