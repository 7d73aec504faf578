//! Polling and refreshing together, against simulated upstreams over real sockets.

mod mastodon;
mod world;
mod x;
