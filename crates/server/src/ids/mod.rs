//! The network service of IDs: one generator, given out over Thrift and HTTP.
//!
//! [`Service`] holds a node and its window; its [`Issuer`] gives out the IDs. [`thrift::Server`]
//! serves the clients of the service of 2010, [`router`] those that speak HTTP.

mod agent;
mod holding;
mod http;
mod issuer;
mod kind;
mod peers;
mod sanity;
mod service;
mod status;
pub mod thrift;
mod watcher;

pub use agent::{MAX_AGENTS, is_agent};
pub use holding::{HoldError, NodeChoice};
pub use http::{api_description, router, routes, standalone};
pub use issuer::{IssueError, Issuer, SharedClock};
pub use kind::check_folder;
pub use sanity::{Peer, SanityError, check, mean_offset_ms};
pub use service::{Service, ServiceError, Settings};
pub use status::Status;
