//! The ID service: one generator, served over Thrift and HTTP.
//!
//! [`Service`] holds a node and its window; its [`Issuer`] issues the IDs. [`thrift::Listener`]
//! serves the clients of the service of 2010, [`router`] those that speak HTTP.

mod agent;
mod blocking;
mod held_node;
mod held_node_error;
mod http;
mod issuer;
mod issuer_status;
mod peers;
mod running;
mod sanity;
mod service;
mod service_error;
mod store_mark;
pub mod thrift;
mod watcher;

pub use agent::{MAX_AGENTS, is_agent};
pub use held_node::NodeChoice;
pub use held_node_error::HeldNodeError;
pub use http::{api_description, router, routes, standalone};
pub use issuer::{IssueError, Issuer, SharedClock};
pub use issuer_status::IssuerStatus;
pub use running::RunningIdService;
pub use sanity::{Peer, SanityError, check, mean_offset_ms};
pub use service::{Service, Settings};
pub use service_error::ServiceError;
pub use store_mark::check_folder;
