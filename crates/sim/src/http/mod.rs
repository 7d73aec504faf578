//! The simulated upstream behind a loopback socket.
//!
//! Only this module reads a clock and opens a socket.

mod answers;
mod authorization;
mod clock;
mod config;
mod mastodon;
mod oauth1;
mod refusal;
mod routes;
mod server;
mod sim;
mod streams;
mod timeline;
mod tweet;
mod twitter;
mod x;

pub use authorization::READER_ID;
pub use clock::{Clock, SetClock};
pub use config::{OAuth1Keys, ServerConfig};
pub use server::SimServer;
pub use timeline::Timeline;
