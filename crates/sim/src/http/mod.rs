//! The simulated upstream behind a loopback socket.
//!
//! Only this module reads a clock and opens a socket.

mod answers;
mod clock;
mod config;
mod routes;
mod server;
mod sim;
mod timeline;

pub use clock::{Clock, SetClock};
pub use config::ServerConfig;
pub use server::SimServer;
pub use timeline::Timeline;
