//! The clients against servers on loopback.

mod fetch;
mod look_up;
mod page;
mod secret;
mod server;
mod stream;
mod tls;
mod twitter;
mod x;
mod x_list;
