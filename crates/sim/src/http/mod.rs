//! The simulated upstream behind a loopback socket.
//!
//! Only this module reads a clock and opens a socket.

mod answers;
mod clock;
mod config;
mod json_answer;
mod mastodon;
mod oauth1;
mod refusal;
mod request;
mod routes;
mod server;
mod sim;
mod streams;
mod timeline;
mod tweet;
mod twitter;
mod x;

pub use clock::{Clock, SetClock};
pub use config::{OAuth1Keys, ServerConfig};
pub use request::READER_ID;
pub use server::SimServer;
pub use timeline::Timeline;
