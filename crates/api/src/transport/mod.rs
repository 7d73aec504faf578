//! HTTP itself: connections, paths, addresses and errors.

mod accept;
mod address;
mod client_address;
mod connection_counts;
mod error;
mod metrics_text;
mod params;
mod path_id;
mod path_text;
mod serve;
mod timed_body;

pub use accept::accept;
pub use error::{ApiError, Problem};
pub use metrics_text::rendered;
pub use serve::{Limits, serve};

pub(crate) use address::Address;
pub(crate) use client_address::{ClientAddress, PeerAddress};
pub(crate) use error::StoreFailure;
pub(crate) use params::Params;
pub(crate) use path_id::PathId;
pub(crate) use path_text::PathText;
