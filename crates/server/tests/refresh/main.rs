//! Polling and refreshing together, against simulated upstreams over real sockets.
#![allow(clippy::unwrap_used)]

mod mastodon;
mod polls;
mod quotas;
mod readers;
mod world;
mod x;
