//! The service of IDs: the real binary, with real clients of Thrift.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod flags;
mod hostile;
mod http;
mod load;
mod nodes;
mod peers;
mod protocol;
mod python;
mod restarts;
mod service;
mod stores;
#[path = "../support/mod.rs"]
mod support;
mod taker;
