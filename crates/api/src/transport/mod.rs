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
mod trusted_proxies;
mod undeclared_proxy;

pub use accept::accept;
pub use address::Address;
pub use error::{ApiError, Problem};
pub use metrics_text::rendered;
pub use serve::{Limits, serve};
pub use trusted_proxies::{TrustedProxies, TrustedProxiesError};
pub use undeclared_proxy::refuse_undeclared_proxies;

pub(crate) use address::OwnOrigin;
pub(crate) use client_address::{ClientAddress, ConnectionEnds};
pub(crate) use error::{ApiResult, JsonResult, StoreFailure};
pub(crate) use params::Params;
pub(crate) use path_id::PathId;
pub(crate) use path_text::PathText;
