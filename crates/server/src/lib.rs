//! Puts the parts of a Driftline server together.
//!
//! [`Daemon`] starts and stops them; [`admin`] executes the commands of the command line, in this process or through a running server;
//! [`LocalMirror`] connects the HTTP API with what reads upstreams.

pub mod admin;
pub mod bells;
pub mod bookmark_watch;
mod daemon;
mod description;
mod failing_lists;
pub mod index_keeper;
pub mod mail;
mod mirror_port;
pub mod server_keys;
pub mod sign_up_sweep;
mod standing_lists;
#[cfg(feature = "testing")]
pub mod testing;

pub use daemon::{Daemon, HttpOptions};
pub use description::api_description;
pub use mirror_port::LocalMirror;
