//! The client against servers on loopback.

mod client;
mod secret;
mod server;
mod tls;
