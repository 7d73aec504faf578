//! Driftline's pollers, HTTP and the service of IDs.
//!
//! [`Pollers`] runs a [`Session`] for each source that it holds a lease on, and follows its stream;
//! [`http`] serves what is stored; [`ids`] gives out IDs; [`admin`] is what the command line asks of
//! a store, in this process or through a running server.

mod access;
pub mod admin;
mod cache_invalidations;
mod client;
mod clock;
mod fault_log;
mod follower;
pub mod http;
pub mod ids;
mod month;
mod policies;
mod pollers;
pub mod quotas;
mod recent;
pub mod refresh;
mod report;
mod secrets;
mod session;
mod source_health;
mod span;
mod store_fault;
mod store_probe;
#[cfg(test)]
mod warnings;

pub use access::{Access, POLLING_SHARE};
pub use cache_invalidations::CacheInvalidations;
pub use client::{ClientError, client_of};
pub use clock::now_ms;
pub use fault_log::{FaultLog, Weight};
pub use follower::Following;
pub use policies::Policies;
pub use pollers::{Pollers, PollersOptions, Progress};
pub use report::{GapReport, LatenessReport, Report, RungReport, report};
pub use secrets::{Secrets, SecretsError};
pub use session::{Done, Session, SessionError};
pub use source_health::{SourceFault, SourceHealth, StalledSource};
pub use span::show_ms;
pub use store_fault::StoreFault;
