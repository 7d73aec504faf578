//! Driftline's pollers, its HTTP API and its ID service.
//!
//! [`Pollers`] runs a [`Session`] for each source that it holds a lease on, and follows its stream;
//! [`http`] serves what is stored; [`ids`] issues IDs; [`admin`] executes the
//! commands of the command line, in this process or through a running server.

pub mod admin;
mod cache_invalidations;
mod client;
mod clock;
mod completeness;
mod fault_log;
mod follower;
pub mod http;
pub mod ids;
mod month;
mod policies;
mod pollers;
pub mod quotas;
mod recent_posts;
pub mod refresh;
mod secrets;
mod session;
mod source_health;
mod span;
mod store_fault;
mod store_probe;
mod upstream_access;
#[cfg(test)]
mod warnings;

pub use cache_invalidations::CacheInvalidations;
pub use client::{ClientError, client_of};
pub use clock::now_ms;
pub use completeness::{
    CompletenessReport, GapReport, LatenessReport, RungReport, completeness_report,
};
pub use fault_log::{FaultLog, Weight};
pub use follower::Following;
pub use policies::Policies;
pub use pollers::{Pollers, PollersOptions, Progress};
pub use secrets::{Secrets, SecretsError};
pub use session::{Done, Session, SessionError};
pub use source_health::{SourceFault, SourceHealth, StalledSource};
pub use span::show_ms;
pub use store_fault::StoreFault;
pub use upstream_access::{POLLING_SHARE, UpstreamAccess};
