//! HTTP itself: connections, paths, addresses and errors.

mod accept;
mod address;
mod error;
mod metrics_text;
mod path_id;
mod routes;
mod serve;

pub use accept::accept;
pub use error::{ApiError, Problem};
pub use metrics_text::rendered;
pub use routes::Routes;
pub use serve::{Limits, serve};

pub(crate) use address::Address;
pub(crate) use path_id::PathId;
