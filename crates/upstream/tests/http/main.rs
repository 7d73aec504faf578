//! The clients against servers on loopback.

mod client;
mod look_up;
mod secret;
mod server;
mod stream;
mod tls;
mod twitter;
mod x;
mod x_list;
