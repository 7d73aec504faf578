//! Replicas of a server that answers from a script.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod chunks;
mod conflicts;
mod edits;
mod hazards;
mod processes;
mod pushes;
mod requests;
mod search;
mod subscriptions;
mod support;
mod tokens;
mod verify;
mod versions;
